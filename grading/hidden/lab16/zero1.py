"""Lab 16: hidden cases of sharded optimizer states."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.zero1 import ShardedSteps


def zero1_cases(rng: random.Random) -> tuple[ShardedSteps, ...]:
    """A number of ranks that divides nothing, with each optimizer; parameters without a gradient; empty shards."""

    def shapes(n_ranks: int, n: int) -> tuple[tuple[int, ...], ...]:
        drawn = [(rng.randint(2, 6), rng.randint(2, 6)) for _ in range(n - 1)]
        rest = -sum(a * b for a, b in drawn) % n_ranks
        return (*drawn, (n_ranks + rest + rng.randint(1, n_ranks - 1),))

    few = rng.randint(4, 5)
    return (
        ShardedSteps(3, shapes(3, 3), n_steps=rng.randint(2, 4)),
        ShardedSteps(5, shapes(5, 2), "adamw", n_steps=rng.randint(2, 4)),
        ShardedSteps(4, shapes(4, 3), "adamw", n_steps=3, idle=rng.randint(0, 2)),
        ShardedSteps(few, ((few - 2,),), "adamw", n_steps=2),
        ShardedSteps(4, ((5,),), n_steps=2),
        ShardedSteps(1, ((rng.randint(2, 5), 3),)),
    )


ZERO1 = Hidden("16-zero1", zero1_cases)
