"""Lab 07: hidden shards, buffers, numbers of streams and moments at which jobs are killed."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.resume import Lines


def interrupted(rng: random.Random) -> tuple[Lines, ...]:
    """One kill and several, a buffer of one line, one that spans shards, one that holds everything; streams that stay
    as many, become fewer and more, and are more than the shards.
    """

    def lines(n_shards: int, buffer_size: int, *n_streams: int) -> Lines:
        return Lines(n_shards, rng.randint(7, 11), buffer_size, n_streams, rng.randint(0, 10_000))

    several = rng.randint(2, 4)
    return (
        lines(rng.randint(6, 8), rng.randint(6, 10), 1, 1),
        lines(rng.randint(6, 8), rng.randint(14, 20), 1, 1, 1, 1),
        lines(rng.randint(7, 9), 1, 1, 1, 1),
        lines(4, 100, 1, 1),
        lines(rng.randint(7, 9), rng.randint(3, 6), several, several, several),
        lines(rng.randint(8, 10), rng.randint(3, 6), 4, rng.randint(1, 2), 3),
        lines(rng.randint(5, 6), rng.randint(3, 6), 2, rng.randint(6, 8)),
    )


RESUME = Hidden("07-resume", interrupted)
