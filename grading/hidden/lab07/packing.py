"""Lab 07: hidden documents to pack."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.packing import Packing


def packing_cases(rng: random.Random) -> tuple[Packing, ...]:
    """With and without padding, documents of one token, and as many as a corpus has."""

    def drawn(window: int, n: int) -> tuple[int, ...]:
        return tuple(rng.randint(1, window // n) for _ in range(n))

    first = rng.randint(20, 60)
    return (
        Packing(rng.randint(15, 40), 32, drawn(32, 3), median=8),
        Packing(rng.randint(50, 90), 96, (first, 96 - first), median=30),
        Packing(rng.randint(50, 90), 80, (1, rng.randint(20, 40), 1, 1), median=25),
        Packing(200_000, rng.choice((1024, 1536)), drawn(1024, 5), median=rng.randint(80, 120)),
    )


def large_windows(rng: random.Random) -> tuple[Packing, ...]:
    """A mask of 16,384 tokens squared takes 256 MiB as booleans; the four tensors take half a MiB."""
    return (Packing(rng.randint(100, 200), 16_384, tuple(rng.randint(500, 1500) for _ in range(8)), median=400),)


PACKING = Hidden("07-packing", packing_cases, memory_cases=large_windows)
