"""Lab 09: hidden cases of a function to be timed."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab09.bench import ENOUGH_FOR_MIB, Timed

NO_CALL_AT_THE_MEDIAN = (51, 52, 58, 59, 60, 61, 67, 68, 69)
"""Numbers of repeats among which neither the first, nor the last, nor a call in the middle takes as long as the median
or the mean. Jitter follows from the number of a kernel alone."""


def timed_cases(rng: random.Random) -> tuple[Timed, ...]:
    """One reading that has to be right, then enough repeats for a median, of memory and of products.

    The last is a single kernel: over a sum of several, the mean and the median come closer. The first call takes so
    long that its part of a mean is more than what others add to any call.
    """
    return (
        Timed(
            n=ENOUGH_FOR_MIB + rng.randint(1, 200_000),
            one_ms=round(rng.uniform(1, 3), 2),
            cache_gain=round(rng.uniform(3, 6), 1),
        ),
        Timed(
            n=rng.randint(300, 500),
            n_kernels=2,
            n_repeats=rng.randint(50, 70),
            one_ms=round(rng.uniform(1, 2), 2),
            first_call_ms=float(rng.randint(600, 900)),
            jitter=0.8,
            cache_gain=round(rng.uniform(3, 6), 1),
        ),
        Timed(
            kind="product",
            n=rng.randint(16, 32),
            n_repeats=rng.choice(NO_CALL_AT_THE_MEDIAN),
            one_ms=round(rng.uniform(1.5, 3), 2),
            first_call_ms=float(rng.randint(600, 900)),
            jitter=0.8,
        ),
    )


BENCH = Hidden("09-bench", timed_cases)
