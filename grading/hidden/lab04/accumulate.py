"""Lab 04: hidden cases of accumulated gradients."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab04.accumulate import Accumulation


def accumulations(rng: random.Random) -> tuple[Accumulation, ...]:
    """Short last windows, clipping on ranks that differ, a window longer than the epoch, one without tokens."""
    n = rng.randint(2, 3)
    return (
        Accumulation(n * rng.randint(2, 3), n),
        Accumulation(2 * n + 1, n, n_texts=3, longest=rng.randint(14, 20)),
        Accumulation(rng.randint(4, 5), 3, n_ranks=rng.randint(2, 4)),
        Accumulation(4, 2, n_ranks=2, max_norm=rng.uniform(0.03, 0.06)),
        Accumulation(3, rng.randint(5, 8)),
        Accumulation(4, 2, n_ranks=2, padding_only=True),
        Accumulation(rng.randint(7, 9), 9, n_texts=8, longest=rng.randint(56, 64), n_hidden=512),
    )


def large_network(rng: random.Random) -> tuple[Accumulation, ...]:
    """Activations of some 15 MiB a micro-batch, of which backward holds three: eight of them take 135 where 60 are
    allowed.
    """
    return (Accumulation(8, 8, n_texts=16, longest=256, n_hidden=rng.randint(1024, 1100)),)


ACCUMULATE = Hidden("04-accumulate", accumulations, memory_cases=large_network)
