"""Lab 10: hidden cases of a histogram."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.histogram import Values


def values_cases(rng: random.Random) -> tuple[Values, ...]:
    """Lengths that the threads exceed; one value only; blocks of several warps."""
    n = rng.randrange(300, 900)
    return (
        Values(n, -(-n // 64)),
        Values(rng.randrange(130, 250), 2, 128, different=1),
        Values(n := rng.randrange(500, 1500), -(-n // 160), 160),
    )


HISTOGRAM = Hidden("10-histogram", values_cases)
