"""Lab 12: hidden cases of RMSNorm with its backward pass."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab12.rmsnorm import Norm


def norm_cases(rng: random.Random) -> tuple[Norm, ...]:
    """Rows whose block is a good deal longer, an eps that counts, and a number of rows that 4 does not divide."""
    return (
        Norm(4 * rng.randrange(4, 7) + 1, 2 * rng.randrange(34, 52) + 1, eps=rng.uniform(0.03, 0.08)),
        Norm(2 * rng.randrange(6, 9), 16 * rng.randrange(9, 14), "float16", dout_by_columns=True),
    )


RMSNORM = Hidden("12-rmsnorm", norm_cases)
