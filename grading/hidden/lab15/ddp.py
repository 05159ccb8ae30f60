"""Lab 15: hidden cases of data parallel training."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.ddp import Job


def job_cases(rng: random.Random) -> tuple[Job, ...]:
    """A low norm first; crossed layers and nothing to clip, so that sums are told from means; absent blocks."""
    return (
        Job(rng.randint(2, 3), rng.randint(5, 7), rng.choice((12, 16, 20)), max_norm=rng.uniform(0.1, 0.25)),
        Job(n_ranks=rng.randint(2, 4), n_blocks=rng.randint(4, 6), odd_ranks_swap=True),
        Job(
            n_ranks=rng.randint(2, 4),
            n_blocks=rng.randint(8, 10),
            cap_blocks=rng.uniform(1.2, 1.9),
            max_norm=rng.uniform(0.1, 0.25),
        ),
        Job(n_ranks=rng.randint(2, 3), n_blocks=4, odd_ranks_skip=rng.randint(0, 3), max_norm=rng.uniform(0.1, 0.25)),
        Job(n_ranks=rng.randint(2, 4), n_blocks=rng.randint(2, 3), n_crossed=4),
        Job(n_ranks=1, n_steps=1),
    )


DDP = Hidden("15-ddp", job_cases)
