"""Lab 10: hidden cases of the sums of blocks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.block_reduce import Sums


def sums_cases(rng: random.Random) -> tuple[Sums, ...]:
    """Blocks of a power of two for the tree, of any number of warps for the shuffles; the last block is not full."""
    return (
        Sums("block_sum", rng.randrange(300, 700), 128),
        Sums("block_sum", rng.randrange(1100, 2000), 512),
        Sums("shuffle_sum", rng.randrange(500, 900), 32 * rng.choice((3, 5, 6, 7))),
        Sums("shuffle_sum", rng.randrange(100, 300), 32),
        Sums("shuffle_sum", rng.randrange(900, 1500), 32 * rng.choice((11, 13, 21))),
    )


BLOCK_REDUCE = Hidden("10-block-reduce", sums_cases)
