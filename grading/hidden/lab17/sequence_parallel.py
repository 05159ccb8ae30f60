"""Lab 17: hidden cases of a block that is cut over the sequence."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab17.sequence_parallel import Block


def block_cases(rng: random.Random) -> tuple[Block, ...]:
    """Uneven columns and too few, several micro-batches, dropout, many tokens, one rank."""

    def sizes(n_ranks: int) -> tuple[int, int, int, int]:
        """n_ranks, sequence, batch, hidden"""
        return n_ranks, n_ranks * rng.randint(1, 3), rng.randint(1, 3), rng.randint(3, 7)

    return (
        Block(*sizes(3), 3 * rng.randint(2, 4)),
        Block(*sizes(4), rng.choice((9, 10, 11)), n_micro=rng.randint(2, 3)),
        Block(*sizes(5), rng.randint(2, 4)),
        Block(3, 3 * rng.randint(3, 5), 3, rng.randint(7, 9), 7, p=rng.choice((0.4, 0.5)), n_micro=2),
        Block(2, 8, 3, rng.randint(5, 7), 6, p=rng.choice((0.3, 0.6))),
        Block(4, 1600, 1, 500 + rng.randint(0, 40), 8),
        Block(1, 4, 6, 5, 6, p=0.3),
    )


def large_cases(rng: random.Random) -> tuple[Block, ...]:
    """A sequence of 14 MiB on 4 ranks: all that they send one another has to stay below 256 MiB."""
    return (Block(4, 3_500 + 4 * rng.randint(0, 24), 1, 1024, 8),)


SEQUENCE_PARALLEL = Hidden("17-sequence-parallel", block_cases, memory_cases=large_cases)
