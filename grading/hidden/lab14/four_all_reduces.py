"""Lab 14: hidden cases of the four ways to all-reduce."""

from __future__ import annotations

import random

from labkit.exercises.lab14.group import Group


def groups(rng: random.Random) -> tuple[Group, ...]:
    """Sizes first that tell what a wrong result is made of; then a rest, a power of two and none, and the edges."""
    return (
        Group(4, (4 * rng.randint(6, 12),)),
        Group(2, (2 * rng.randint(5, 20),), "int64"),
        # A rest of n - 1: a ring that has all of it in one chunk sends more than it has to.
        Group(3, (3 * rng.randint(5, 12) + 2,)),
        Group(rng.randint(6, 7), (rng.randint(7, 9), 11), "int32"),
        # A rest of 2 or 4: chunks of two lengths, several of each.
        Group(8, (2, 4 * rng.randint(5, 12) + rng.randint(1, 2)), "bfloat16"),
        Group(5, (rng.randint(1, 2), 2), "float64"),
        Group(rng.randint(3, 8), (0, rng.randint(1, 4)), "float64"),
        Group(1, (rng.randint(2, 9),), "int64"),
    )
