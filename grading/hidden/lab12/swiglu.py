"""Lab 12: hidden cases of SwiGLU with its backward pass."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab12.shapes import Graded


def swiglu_cases(rng: random.Random) -> tuple[Graded, ...]:
    """A number of elements that no block divides; and an aligned one, with rows longer than a usual block, so that a
    program for each row and its first block is too few."""
    return (
        Graded(2 * rng.randrange(3, 6) + 1, 2 * rng.randrange(60, 90) + 1),
        Graded(rng.randrange(2, 4), 16 * rng.randrange(66, 90), "float16", dout_by_columns=True),
    )


SWIGLU = Hidden("12-swiglu", swiglu_cases)
