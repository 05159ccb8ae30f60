"""Lab 19: hidden cases of experts with few places."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab19.moe_capacity import Routing


def routings(rng: random.Random) -> tuple[Routing, ...]:
    """One choice and several, even and uneven loads, few tokens, and places for all."""
    factor = round(rng.uniform(0.8, 1.6), 2)
    return (
        Routing(rng.randint(20, 30), 5, 1, places=rng.randint(3, 4), factor=factor),
        Routing(rng.randint(30, 50), 8, 2, places=rng.randint(6, 8), factor=factor),
        Routing(rng.randint(30, 50), 6, 3, places=rng.randint(12, 14), factor=factor, skew=2.0),
        Routing(rng.randint(3, 6), 16, 2, places=1, factor=1.0),
        # A whole number of places at a factor that float64 holds exactly: nothing is left to round.
        Routing(8 * rng.randint(1, 3), 4, 2, places=24),
    )


MOE_CAPACITY = Hidden("19-moe-capacity", routings)
