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
    )


ACCUMULATE = Hidden("04-accumulate", accumulations)
