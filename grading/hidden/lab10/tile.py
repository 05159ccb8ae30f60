"""Lab 10: hidden cases of a transpose in tiles."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.tile import SIDE, Matrix


def matrix_cases(rng: random.Random) -> tuple[Matrix, ...]:
    """Full tiles, two or more both ways; then sides that are no multiples of 32; one row."""
    return (
        Matrix(SIDE * rng.randint(3, 4), SIDE * 2),
        Matrix(rng.randrange(35, 63), rng.randrange(67, 95)),
        Matrix(rng.randrange(67, 95), rng.randrange(3, 31)),
        Matrix(1, rng.randrange(34, 60)),
    )


TILE = Hidden("10-tile", matrix_cases)
