"""Lab 11: hidden cases of operators of one's own."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.custom_op import Operators


def operator_cases(rng: random.Random) -> tuple[Operators, ...]:
    """Rows that end in a shorter block, rows of whole blocks, x by columns, more dimensions, 16 bits."""
    return (
        _operators(rng, (rng.randint(3, 8),)),
        _operators(rng, (rng.randint(4, 8),), transposed=True, whole=True),
        _operators(rng, (rng.randint(2, 3), rng.randint(2, 4)), dtype="bfloat16"),
    )


def _operators(
    rng: random.Random, rows: tuple[int, ...], dtype: str = "float32", transposed: bool = False, whole: bool = False
) -> Operators:
    block = rng.randint(2, 5)
    columns = block * rng.randint(2, 4) + (0 if whole else rng.randint(1, block - 1))
    return Operators((*rows, columns), block, dtype, transposed)


CUSTOM_OP = Hidden("11-custom-op", operator_cases)
