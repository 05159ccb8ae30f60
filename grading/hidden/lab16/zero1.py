"""Lab 16: hidden cases of sharded optimizer states."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.shards import ShardedSteps


def odd_shapes(rng: random.Random, n_ranks: int, n: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of n parameters whose elements together are no multiple of n_ranks."""
    drawn = [(rng.randint(2, 6), rng.randint(2, 6)) for _ in range(n - 1)]
    rest = -sum(a * b for a, b in drawn) % n_ranks
    return (*drawn, (n_ranks + rest + rng.randint(1, n_ranks - 1),))


def zero1_cases(rng: random.Random) -> tuple[ShardedSteps, ...]:
    """A number of ranks that divides nothing, with each optimizer; parameters without a gradient; empty shards."""
    few = rng.randint(4, 5)
    return (
        ShardedSteps(3, odd_shapes(rng, 3, 3), n_steps=rng.randint(2, 4)),
        ShardedSteps(5, odd_shapes(rng, 5, 2), "adamw", n_steps=rng.randint(2, 4)),
        ShardedSteps(4, odd_shapes(rng, 4, 3), "adamw", n_steps=3, idle=rng.randint(0, 1)),
        ShardedSteps(few, ((few - 2,),), "adamw", n_steps=2),
        ShardedSteps(4, ((5,),), n_steps=2),
        ShardedSteps(3, ((700, 900 + rng.randint(1, 99)), (rng.randint(2, 99),)), "adamw", n_steps=2),
        ShardedSteps(1, ((rng.randint(2, 5), 3),)),
    )


def large_cases(rng: random.Random) -> tuple[ShardedSteps, ...]:
    """8 MiB of weights on 4 ranks: AdamW's states are 16 MiB whole, and 4 MiB cut."""
    return (ShardedSteps(4, ((1024, 1024), (1023, 1000 + rng.randint(1, 9))), "adamw", n_steps=2),)


ZERO1 = Hidden("16-zero1", zero1_cases, memory_cases=large_cases)
