"""Lab 11: hidden cases of a device that records."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.lazy_tensor import LazyLoop


def lazy_cases(rng: random.Random) -> tuple[LazyLoop, ...]:
    """Each reason to cut or to compile by itself, and together."""
    n_steps = rng.randint(6, 10)
    rows = rng.randint(4, 7)
    return (
        _loop(rng, n_steps, rows, last_rows=rng.randint(1, rows - 1)),
        _loop(rng, n_steps, rows, print_every=rng.randint(2, 3), looks_back=True),
        _loop(rng, n_steps, rows, other_at=rng.randint(1, n_steps - 4), swapped_at=n_steps - rng.randint(1, 2)),
        _loop(rng, n_steps, rows, last_rows=rng.randint(1, rows - 1), print_every=2, other_at=1, looks_back=True),
    )


def _loop(rng: random.Random, n_steps: int, n_rows: int, last_rows: int | None = None, **fields) -> LazyLoop:
    return LazyLoop(n_steps, n_rows, rng.randint(2, 6), n_rows if last_rows is None else last_rows, **fields)


LAZY_TENSOR = Hidden("11-lazy-tensor", lazy_cases)
