"""Lab 07: hidden shards, buffers and moments at which jobs are killed."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.resume import Lines


def interrupted(rng: random.Random) -> tuple[Lines, ...]:
    """One kill and several, a buffer of one line, one that spans shards, and one that holds everything."""

    def lines(n_shards: int, buffer_size: int, n_kills: int) -> Lines:
        return Lines(n_shards, rng.randint(7, 11), buffer_size, n_kills, rng.randint(0, 10_000))

    return (
        lines(rng.randint(6, 8), rng.randint(6, 10), 1),
        lines(rng.randint(6, 8), rng.randint(14, 20), 3),
        lines(rng.randint(7, 9), 1, 2),
        lines(4, 100, 1),
    )


RESUME = Hidden("07-resume", interrupted)
