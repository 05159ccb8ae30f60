"""Lab 12: hidden cases of a masked sum."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab12.shapes import Vector


def add_cases(rng: random.Random) -> tuple[Vector, ...]:
    """Lengths that no block divides, one that every block does, and one below any block."""
    return (
        Vector(2 * rng.randrange(550, 1000) + 1),
        Vector(1024 * rng.randrange(2, 5)),
        Vector(2 * rng.randrange(150, 250) + 1, rng.choice(("float16", "bfloat16"))),
        Vector(rng.randrange(2, 8)),
    )


ADD = Hidden("12-add", add_cases)
