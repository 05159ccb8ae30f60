"""Lab 20: hidden features to ask for, with other numbers, and rows that no slide has."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab20.flags import (
    ACCUMULATION,
    ALL,
    BATCH,
    CACHE,
    CHECKPOINTING,
    COMPILE,
    MIXED,
    NONE,
    NOT_RUN_HERE,
    OPTIMIZER,
    PRELOADING,
    SOME,
    Feature,
)


def features(rng: random.Random) -> tuple[Feature, ...]:
    """Batches that a micro-batch divides, that it does not, primes, and one that fits as it is."""
    every, prime = rng.choice((2, 3)), rng.choice((7, 11))

    def some(name: str, **fixed: int) -> Feature:
        samples = rng.choice((4, 5, 6, 7, 9))
        return Feature(name, **{"samples": samples, "fits": samples, **fixed})

    return (
        some(BATCH),
        Feature(ACCUMULATION, samples=4 * (half := rng.choice((3, 5))), fits=2 * half),
        Feature(ACCUMULATION, samples=18, fits=rng.choice((7, 8))),
        Feature(ACCUMULATION, samples=prime, fits=rng.randint(2, prime - 1)),
        some(ACCUMULATION, fits=rng.randint(10, 16)),
        some(CHECKPOINTING),
        some(MIXED),
        some(CACHE, every=every, n_steps=2 * every),
        some(OPTIMIZER),
        *map(some, NOT_RUN_HERE),
        Feature(MIXED, n_sizes=rng.randint(2, 4), speed=SOME, memory=NONE),
        Feature(BATCH, n_sizes=3, speed=SOME, memory=SOME),
        Feature(CHECKPOINTING, n_sizes=rng.randint(3, 5), speed=NONE, memory=rng.choice((SOME, NONE))),
        Feature(COMPILE, n_sizes=4, speed=NONE, memory=SOME),
        Feature(OPTIMIZER, n_sizes=1, speed=ALL, memory=NONE),
        Feature(PRELOADING, n_sizes=rng.randint(2, 4), speed=NONE, memory=ALL),
    )


FLAGS = Hidden("20-flags", features)
