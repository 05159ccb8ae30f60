"""Lab 16: hidden numbers of ranks and sizes, and kills at every write of a step."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.checkpoint import Jobs


def killed_jobs(rng: random.Random) -> tuple[Jobs, ...]:
    """Ranks that divide nothing, empty shards, one rank, a kill at every write of some steps, and one before any."""
    n = rng.randint(2, 3)
    first = rng.randint(2, 4)
    a_step = 4 * n + 2
    kills = (*range(first, a_step + 1), *range(a_step + first, 2 * a_step, 2))
    return (
        Jobs((n,) * (len(kills) + 1), kills, rng.randint(7, 13), rng.randint(1, 3), 12, rng.randint(4, 5)),
        Jobs((4, 3, 5), (rng.randint(12, 18), rng.randint(8, 16)), rng.randint(13, 17), 2, 5, 2),
        Jobs((5, 2), (rng.randint(15, 25),), rng.randint(2, 4), 1, 4, 6),
        Jobs((1, 3), (rng.randint(5, 9),), rng.randint(5, 9), 2, 4, 1),
        Jobs((3, 2), (1,), rng.randint(2000, 4000), 5, 2, 5),
    )


CHECKPOINT = Hidden("16-checkpoint", killed_jobs)
