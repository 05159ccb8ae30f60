"""Lab 19: hidden cases of heads traded for tokens."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab19.ulysses import Trade


def trades(rng: random.Random) -> tuple[Trade, ...]:
    """Grouped heads and as many of keys as of queries, one rank and several, heads that cannot be dealt."""
    n = rng.randint(3, 5)
    return (
        Trade(n, 2 * n * rng.randint(1, 2), n, length=rng.randint(2, 5), d=rng.choice((3, 5, 8))),
        Trade(3, 6 * rng.randint(1, 2), 6, length=rng.randint(2, 5)),
        Trade(4, 8, 8, length=rng.randint(2, 5), forward_only=True),
        Trade(2, 8, 4, length=rng.randint(2, 6)),
        Trade(1, 4, 2, length=rng.randint(3, 6)),
        Trade(n, n + 1, n + 1),
        Trade(4, 4 * rng.randint(2, 3), 2),
        Trade(3, 24, 12, tensor=rng.choice((2, 3, 6))),
    )


ULYSSES = Hidden("19-ulysses", trades)
