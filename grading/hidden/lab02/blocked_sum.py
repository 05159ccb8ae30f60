"""Lab 02: hidden tensors to sum in blocks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab02.blocked_sum import Blocks


def blocked_cases(rng: random.Random) -> tuple[Blocks, ...]:
    """Tensors of some 2**18 elements: large beside a block, and small enough to be quick.

    No hint is looked for in a result that is much larger than it should be. So the lengths of a result along another
    axis, or along all of them where dim is -2, stay within that.
    """
    block = rng.choice((48, 64, 96))
    return (
        Blocks((16 * block, 256), 0, block),
        Blocks((2 ** rng.randint(7, 8), 12 * block), rng.choice((1, -1)), block),
        Blocks((16 * block + rng.randint(1, block - 1), 100), 0, 2 * block),
        Blocks((rng.randint(4, 8), 12 * block + 5, 20), rng.choice((1, -2)), block),
        Blocks((rng.randint(4, 8), 1, rng.randint(260, 320)), -1, rng.randint(3, 5)),
        Blocks((rng.randint(2, 9), 7), rng.choice((0, -2)), 64),
    )


def large_blocks(rng: random.Random) -> tuple[Blocks, ...]:
    """64 MiB of float16: a cast of all of it takes 128 MiB more, a block a quarter of one."""
    return (Blocks((rng.randint(32_000, 32_768), 1024), 0, 64),)


BLOCKED_SUM = Hidden("02-blocked-sum", blocked_cases, memory_cases=large_blocks)
