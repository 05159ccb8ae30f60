"""Lab 16: hidden cases of sharded gradients."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from grading.hidden.lab16.zero1 import odd_shapes
from labkit.exercises.lab16.shards import ShardedSteps


def zero2_cases(rng: random.Random) -> tuple[ShardedSteps, ...]:
    """A number of ranks that divides nothing, with each optimizer; parameters without a gradient; one micro-batch."""
    return (
        ShardedSteps(3, odd_shapes(rng, 3, 3), n_steps=rng.randint(2, 3), n_micro=2),
        ShardedSteps(5, odd_shapes(rng, 5, 3), "adamw", n_micro=rng.randint(2, 4)),
        ShardedSteps(4, odd_shapes(rng, 4, 3), "adamw", n_micro=2, idle=rng.randint(0, 2)),
        ShardedSteps(4, ((rng.randint(1, 3),), (5,)), n_steps=2),
        ShardedSteps(3, ((400, 500 + rng.randint(1, 99)), (500, 502), (250_003,)), n_steps=2),
        ShardedSteps(1, ((rng.randint(2, 5), 3), (2,)), n_micro=2),
    )


def large_cases(rng: random.Random) -> tuple[ShardedSteps, ...]:
    """16 MiB of weights on 3 ranks. AdamW's states are 32 MiB whole, which momentum's 16 are too few to show.

    In parameters of 4 MiB, whose parts are of more than 1 MiB: of parameters of 1 MiB the heap kept 6.7 MiB beyond the
    32 that were counted after the steps, and of these 0.1.
    """
    return (ShardedSteps(3, ((1024, 1024),) * 3 + ((1023, 1000 + rng.randint(1, 9)),), "adamw", n_steps=2),)


ZERO2 = Hidden("16-zero2", zero2_cases, memory_cases=large_cases)
