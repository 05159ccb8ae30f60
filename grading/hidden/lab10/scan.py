"""Lab 10: hidden cases of the prefix sums of a block."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.scan import Prefix


def prefixes(rng: random.Random) -> tuple[Prefix, ...]:
    """Two or three blocks, the last of which ends within a thread's eight; one that is nearly empty."""
    return (
        Prefix(512 * rng.randint(1, 2) + 8 * rng.randint(5, 60) + rng.randint(1, 7), 64),
        Prefix(2048 + 8 * rng.randint(140, 250) + rng.randint(1, 7), 256),
        Prefix(1024 + rng.randint(1, 7), 128),
        Prefix(8 * rng.randint(33, 60), rng.choice((64, 128, 256))),
    )


SCAN = Hidden("10-scan", prefixes)
