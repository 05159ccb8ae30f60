"""Lab 12: hidden cases of bias, GELU, dropout and a residual sum."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab12.bias_gelu_dropout import Dropped


def dropout_cases(rng: random.Random) -> tuple[Dropped, ...]:
    """Other seeds, sizes and probabilities; with p = 1/2 a mistaken share would not show.

    The second case has rows longer than a usual block: a program for each row and its first block is too few.
    """

    def odd(first: int, last: int) -> int:
        return 2 * rng.randrange(first, last) + 1

    return (
        Dropped(rng.randrange(13, 18), odd(65, 85), p=rng.uniform(0.15, 0.35), seed=4 * rng.randrange(2, 2**28) + 1),
        Dropped(
            rng.randrange(2, 4),
            odd(520, 600),
            dout_by_columns=True,
            p=rng.uniform(0.6, 0.7),
            seed=4 * rng.randrange(2, 2**28) + 1,
        ),
    )


BIAS_GELU_DROPOUT = Hidden("12-bias-gelu-dropout", dropout_cases)
