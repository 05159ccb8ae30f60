"""Lab 11: hidden cases of a device that records."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.lazy_tensor import LazyLoop


def lazy_cases(rng: random.Random) -> tuple[LazyLoop, ...]:
    """Each reason to cut or to compile by itself, and together."""
    size = (rng.randint(6, 10), rng.randint(4, 7), rng.randint(2, 6))
    n_steps, rows, _ = size
    # One size in all loops, so that what one device has compiled would fit another.
    return (
        LazyLoop(*size, last_rows=rng.randint(1, rows - 1)),
        LazyLoop(*size, last_rows=rows, print_every=rng.randint(2, 3), looks_back=True),
        LazyLoop(*size, last_rows=rows, other_at=rng.randint(1, n_steps - 4), swapped_at=n_steps - rng.randint(1, 2)),
        LazyLoop(*size, last_rows=rng.randint(1, rows - 1), print_every=2, other_at=1, looks_back=True),
    )


LAZY_TENSOR = Hidden("11-lazy-tensor", lazy_cases)
