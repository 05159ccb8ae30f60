"""Lab 15: hidden cases of accumulation without communication."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.no_sync import MicroBatches


def micro_cases(rng: random.Random) -> tuple[MicroBatches, ...]:
    """Equal micro-batches, unequal ones, one alone, one rank."""
    n_rows = rng.randint(2, 6)
    return (
        MicroBatches(rng.randint(2, 4), (n_rows,) * rng.randint(2, 5), rng.randint(4, 8)),
        MicroBatches(rng.randint(2, 4), (rng.randint(6, 9), rng.randint(3, 5), rng.randint(1, 2)), n_steps=3),
        MicroBatches(rng.randint(2, 3), (rng.randint(1, 5),)),
        MicroBatches(1, (rng.randint(1, 3), rng.randint(4, 5))),
    )


NO_SYNC = Hidden("15-no-sync", micro_cases)
