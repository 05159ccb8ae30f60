"""Lab 10: hidden cases of a kernel whose threads have several elements each."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.coalescing import Axpy


def axpy_cases(rng: random.Random) -> tuple[Axpy, ...]:
    """From two to some twenty elements a thread; no length is a multiple of 8."""
    return (
        Axpy(8 * rng.randrange(300, 500) + rng.randrange(1, 8), rng.randint(3, 5), 64),
        Axpy(8 * rng.randrange(400, 600) + rng.randrange(1, 8), rng.randint(5, 9), 32),
        Axpy(8 * rng.randrange(300, 500) + rng.randrange(1, 8), 2, rng.choice((96, 160, 256))),
    )


COALESCING = Hidden("10-coalescing", axpy_cases)
