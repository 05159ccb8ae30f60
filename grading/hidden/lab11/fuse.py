"""Lab 11: hidden cases of a chain that becomes one kernel."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.fuse import Chain


def chain_cases(rng: random.Random) -> tuple[Chain, ...]:
    """Sizes that are multiples of nothing, three and four dimensions, and y by columns."""
    return (
        Chain((rng.randint(20, 60), rng.randint(30, 90))),
        Chain((rng.randint(2, 4), rng.randint(2, 4), rng.randint(5, 9), rng.randint(6, 20))),
        Chain((rng.randint(10, 40), rng.randint(41, 70)), transposed=True),
    )


FUSE = Hidden("11-fuse", chain_cases)
