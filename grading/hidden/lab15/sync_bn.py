"""Lab 15: hidden cases of batch normalization over all ranks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.sync_bn import Rows


def row_cases(rng: random.Random) -> tuple[Rows, ...]:
    """Equal batches, unequal ones, an empty one, and a mean that drowns the variance."""
    n_rows, n_channels = rng.randint(4, 9), rng.randint(2, 7)
    return (
        Rows((n_rows,) * rng.randint(2, 4), n_channels),
        Rows((rng.randint(7, 9), rng.randint(4, 6), rng.randint(2, 3)), n_channels),
        Rows((rng.randint(1, 2), rng.randint(5, 9)), n_channels),
        Rows(tuple(rng.sample((0, rng.randint(3, 5), rng.randint(6, 8)), 3)), n_channels),
        Rows(
            (rng.randint(50, 70), rng.randint(20, 40)), n_channels, mean=rng.choice((-1, 1)) * rng.uniform(1500, 2500)
        ),
        Rows((rng.randint(2, 9),), n_channels),
    )


SYNC_BN = Hidden("15-sync-bn", row_cases)
