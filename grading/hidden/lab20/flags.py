"""Lab 20: hidden features to ask for, with other numbers, and rows that no slide has."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab20.flags import (
    ACCUMULATION,
    BATCH,
    CACHE,
    CHECKPOINTING,
    COMPILE,
    MIXED,
    NOT_RUN_HERE,
    OPTIMIZER,
    PRELOADING,
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
        Feature(MIXED, speed="Np", memory=rng.choice(("Nn", "nN", "NN"))),
        Feature(BATCH, speed="pnP", memory=rng.choice(("PNN", "PNn"))),
        Feature(CHECKPOINTING, speed="Nn", memory="NP"),
        Feature(COMPILE, speed="NNNn", memory="NPPN"),
        Feature(OPTIMIZER, speed="P", memory=rng.choice("nN")),
        Feature(PRELOADING, speed="nN", memory=rng.choice(("pp", "Pp"))),
    )


FLAGS = Hidden("20-flags", features)
