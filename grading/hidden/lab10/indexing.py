"""Lab 10: hidden cases of a thread for each element of a matrix."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.indexing import Image


def image_cases(rng: random.Random) -> tuple[Image, ...]:
    """Wide, tall and square ones of odd sides, which no block of even ones divides; blocks of no whole warps."""
    return (
        Image(rng.randrange(17, 31, 2), rng.randrange(65, 99, 2), (32, 8)),
        Image(rng.randrange(65, 99, 2), rng.randrange(17, 31, 2), (16, 8)),
        Image(side := rng.randrange(33, 63, 2), side, (16, 16)),
        Image(rng.randrange(20, 40), rng.randrange(20, 40), (rng.choice((5, 7, 11)), 6), spare=(1, rng.randint(0, 2))),
        Image(1, 1, (32, 4)),
    )


INDEXING = Hidden("10-indexing", image_cases)
