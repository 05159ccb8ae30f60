"""Lab 08, 4-bit NormalFloat: hidden cases. Two of 2**16 weights and more, where the bits are counted."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab08.nf4 import Weights


def nf4_cases(rng: random.Random) -> tuple[Weights, ...]:
    rows = rng.randint(260, 300)
    return (
        Weights((rng.randint(20, 40), 64), kind="grid", scale=rng.choice((0.3, 2.0))),
        Weights((64, 64), kind="uneven", scale=rng.uniform(0.01, 0.1), task=True),
        Weights((256, rows), kind="faint"),
        # Little more than four groups of scales: a fifth one filled up to 256 takes too many bits.
        Weights((rng.randint(257, 264), 256), double=True, kind="uneven", scale=rng.uniform(0.01, 0.1)),
        Weights((rows, rng.randint(257, 299)), double=True, kind="outliers"),
        Weights((rng.randint(30, 50), 64), double=True, kind="zeros"),
        Weights((rng.choice((5, 7, 9)), rng.choice((31, 33, 35))), kind="normal", strided=True),
    )


NF4 = Hidden("08-nf4", nf4_cases)
