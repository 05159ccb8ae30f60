"""Lab 05: hidden cases of a checkpoint."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.checkpoint import Blocks


def checkpoint_cases(rng: random.Random) -> tuple[Blocks, ...]:
    """Other sizes than the public ones; without dropout a mistake with random numbers would not show."""
    return (
        Blocks(rng.randint(56, 80), 16, 256, rng.randint(5, 7), drop=rng.choice((0.1, 0.3))),
        Blocks(rng.randint(90, 120), 8, 192, rng.randint(4, 6), drop=rng.choice((0.4, 0.6))),
        Blocks(64, 12, 256, 5, drop=0.0),
    )


def large_blocks(rng: random.Random) -> tuple[Blocks, ...]:
    """8 MiB each tensor inside a block, more than three of which a block keeps without a checkpoint."""
    return (Blocks(rng.randint(8000, 8192), 8, 256, 7, drop=0.2),)


CHECKPOINT = Hidden("05-checkpoint", checkpoint_cases, memory_cases=large_blocks)
