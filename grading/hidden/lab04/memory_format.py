"""Lab 04: hidden sizes of images."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab04.memory_format import Images


def sizes(rng: random.Random) -> tuple[Images, ...]:
    """Several images, one, one channel, one pixel."""
    return (
        Images(rng.randint(2, 4), rng.randint(3, 9), rng.randint(4, 8), rng.randint(9, 12)),
        Images(1, rng.randint(4, 12), rng.randint(5, 8), rng.randint(3, 4)),
        Images(rng.randint(2, 3), 1, rng.randint(4, 6), rng.randint(7, 9)),
        Images(rng.randint(2, 3), rng.randint(3, 9), 1, 1),
    )


MEMORY_FORMAT = Hidden("04-memory-format", sizes)
