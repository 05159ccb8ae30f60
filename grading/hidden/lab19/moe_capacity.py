"""Lab 19: hidden cases of experts with few places."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab19.moe_capacity import Routing
from labkit.oracles.lab19.capacity_mistakes import twice_rounded
from labkit.oracles.lab19.capacity_values import right_capacities

FACTORS = tuple(hundredths / 100 for hundredths in (*range(80, 98), *range(101, 161)))
"""Between these two ranges, no number of tokens tells a load that is rounded twice from one that is rounded once."""


def rounding_twice_shows(n_tokens: int, factor: float) -> bool:
    """For 8 experts and 2 choices of each token."""
    case = Routing(n_tokens, 8, 2, places=1, factor=factor)
    return twice_rounded(case) not in right_capacities(case)


def routings(rng: random.Random) -> tuple[Routing, ...]:
    """One choice and several, even and uneven loads, few tokens, and places for all."""
    factor = rng.choice(FACTORS)
    n_tokens = rng.choice([n for n in range(30, 51) if rounding_twice_shows(n, factor)])
    return (
        Routing(rng.randint(20, 30), 5, 1, places=rng.randint(3, 4), factor=factor),
        Routing(n_tokens, 8, 2, places=rng.randint(6, 8), factor=factor),
        Routing(rng.randint(30, 50), 6, 3, places=rng.randint(12, 14), factor=factor, skew=2.0),
        Routing(rng.randint(3, 6), 16, 2, places=1, factor=1.0),
        # A whole number of places at a factor that float64 holds exactly: nothing is left to round.
        Routing(8 * rng.randint(1, 3), 4, 2, places=24),
    )


MOE_CAPACITY = Hidden("19-moe-capacity", routings)
