"""Lab 10: hidden cases of requests and sectors."""

from __future__ import annotations

import random

from grading.hidden import Hidden, drawn
from labkit.exercises.lab10.sectors import Load


def load_cases(rng: random.Random) -> tuple[Load, ...]:
    """Misaligned, strided, of each size, masked, and of blocks that are no whole warps; then a mixture."""
    size = rng.choice((4, 8))
    mixed = rng.choice((2, 8, 16))
    return (
        misaligned(rng, 4),
        Load(rng.randrange(400, 900), rng.choice((64, 128)), size=size, stride=rng.randrange(2, 7)),
        Load(rng.randrange(200, 500), size=16, offset=16 * rng.randrange(2)),
        misaligned(rng, 8),
        Load(rng.randrange(300, 600), block=rng.choice((40, 72, 100, 200))),
        Load(rng.randrange(300, 900), block=96, every=rng.randrange(33, 60)),
        Load(rng.randrange(300, 900), 160, mixed, rng.randrange(0, 4), mixed * rng.randrange(3), rng.randrange(1, 9)),
    )


def misaligned(rng: random.Random, size: int) -> Load:
    """Elements that touch one sector more in all than they would at offset 0.

    Otherwise whoever counts each sector once in the whole launch gets what whoever leaves the offset out gets.
    """
    n, offset = drawn(
        lambda: (rng.randrange(1600, 3600) // size, size * rng.randrange(1, 32 // size)),
        lambda load: -(-(load[1] + load[0] * size) // 32) > -(-load[0] * size // 32),
    )
    return Load(n, size=size, offset=offset)


SECTORS = Hidden("10-sectors", load_cases)
