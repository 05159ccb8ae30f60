"""Lab 13: hidden cases of the statistics of a softmax."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab13.online_softmax import N_KINDS, Blocks


def block_cases(rng: random.Random) -> tuple[Blocks, ...]:
    """Blocks of any widths, single columns among them, and many blocks, which nobody should keep."""

    def widths(n: int, most: int) -> tuple[int, ...]:
        return tuple(rng.randrange(1, most) for _ in range(n))

    return (
        Blocks((*widths(4, 20), 10), n_rows=2 * N_KINDS),
        Blocks((1, *widths(5, 12))),
        Blocks((rng.randrange(6, 12),) * rng.randrange(30, 45)),
        Blocks(widths(3, 40), dtype="float16"),
    )


def large_blocks(rng: random.Random) -> tuple[Blocks, ...]:
    """64 MiB in blocks of 1 MiB: a list of them takes 64 MiB more, a few blocks 8."""
    return (Blocks((2**15,) * (64 - rng.randrange(3))),)


ONLINE_SOFTMAX = Hidden("13-online-softmax", block_cases, memory_cases=large_blocks)
