"""Lab 07: hidden grids of ranks and workers."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.shard_workers import Grid


def grids(rng: random.Random) -> tuple[Grid, ...]:
    """With and without a rest, one rank, no workers, more than ten workers, more workers than samples, more ranks than
    samples.
    """

    def seed() -> int:
        return rng.randint(0, 10_000)

    ranks, workers, many = rng.randint(3, 5), rng.randint(2, 4), rng.randint(11, 13)
    # Of so few samples blocks of two leave some workers of a rank nothing.
    n_of_rank = many + rng.randint(5, 9)
    return (
        Grid(ranks * workers * rng.randint(4, 7), ranks, workers, seed()),
        Grid(ranks * rng.randint(14, 20) + rng.randint(1, ranks - 1), ranks, workers, seed()),
        Grid(rng.randint(50, 70), 1, rng.randint(3, 6), seed()),
        Grid(2 * rng.randint(20, 30) + 1, 2, 0, seed()),
        Grid(3 * n_of_rank + rng.randint(0, 2), 3, many, seed()),
        Grid(rng.randint(5, 8), 2, rng.randint(5, 7), seed()),
        Grid(rng.randint(1, 3), 4, 2, seed()),
    )


SHARD_WORKERS = Hidden("07-shard-workers", grids)
