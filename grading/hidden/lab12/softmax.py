"""Lab 12: hidden cases of softmax in one pass."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab12.shapes import Rows


def softmax_cases(rng: random.Random) -> tuple[Rows, ...]:
    """Rows that no power of two divides, with and without gaps between them, and aligned ones."""
    return (
        Rows(rng.randrange(5, 9), 2 * rng.randrange(35, 60) + 1),
        Rows(rng.randrange(4, 7), 1024 * rng.randrange(2, 5)),
        Rows(rng.randrange(4, 7), rng.randrange(130, 250), "float16", gap=rng.randrange(1, 40)),
    )


SOFTMAX = Hidden("12-softmax", softmax_cases)
