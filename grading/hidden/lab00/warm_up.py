"""Lab 00: hidden cases of the warm-up."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab00.warm_up import Activations
from labkit.spec import Case


def _cases(rng: random.Random) -> tuple[Case, ...]:
    """A plain one first, then every dtype, negative axes, and float16 whose squares and sums leave its range.

    No axis that is averaged has the length of one that is not, so that a wrong axis shows in the shape.
    """
    n_rows, n_cols, n_long = rng.randint(3, 6), rng.randint(8, 12), rng.randint(40, 90)
    return (
        Activations((n_rows, n_cols)),
        Activations((n_long, n_rows), dim=0),
        Activations((n_rows, n_cols, n_long), dim=rng.choice((1, -2))),
        Activations((n_cols, n_long), dtype="float16", zero_row=True),
        Activations((n_cols, n_rows), dim=-2, dtype="bfloat16"),
        Activations((n_rows, n_cols, n_long), dtype="bfloat16", scale=rng.uniform(1e4, 1e6)),
        Activations((n_rows, n_cols), dtype="float16"),
        Activations((n_rows, 2 * n_long), dtype="float16", scale=rng.uniform(9000, 10000), faint_row=True),
        Activations((n_long, n_cols), dim=0, dtype="float16", scale=rng.uniform(4e-5, 2e-4)),
    )


WARM_UP = Hidden("00-warm-up", cases=_cases)
