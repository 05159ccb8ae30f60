"""Lab 10: hidden cases of requests and sectors."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.sectors import Load


def load_cases(rng: random.Random) -> tuple[Load, ...]:
    """Misaligned, strided, of each size, masked, and of blocks that are no whole warps; then a mixture."""
    size = rng.choice((4, 8))
    mixed = rng.choice((2, 8, 16))
    return (
        Load(rng.randrange(400, 900), offset=4 * rng.randrange(1, 8)),
        Load(rng.randrange(400, 900), rng.choice((64, 128)), size=size, stride=rng.randrange(2, 7)),
        Load(rng.randrange(200, 500), size=16, offset=16 * rng.randrange(2)),
        Load(rng.randrange(200, 500), size=8, offset=8 * rng.randrange(1, 4)),
        Load(rng.randrange(300, 600), block=rng.choice((40, 72, 100, 200))),
        Load(rng.randrange(300, 900), block=96, every=rng.randrange(33, 60)),
        Load(rng.randrange(300, 900), 160, mixed, rng.randrange(0, 4), mixed * rng.randrange(3), rng.randrange(1, 9)),
    )


SECTORS = Hidden("10-sectors", load_cases)
