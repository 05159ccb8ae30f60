"""Lab 13: hidden cases of the order of tiles."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab13.grouped_order import Order


def order_cases(rng: random.Random) -> tuple[Order, ...]:
    """Groups that divide the rows and groups that do not, many programs at once and one by one, and a low result."""
    group = rng.randrange(4, 7)
    uneven = group * rng.randrange(3, 5) + rng.randrange(1, group)
    at_once = group * rng.randrange(group, group + 3)
    low = rng.randrange(2, 5)

    def large() -> tuple[int, int]:
        return rng.randrange(280, 340), rng.randrange(280, 340)

    return (
        Order(uneven, rng.randrange(18, 26), group, at_once, at_once + rng.randrange(4, 12), large=large()),
        Order(
            group * rng.randrange(3, 5),
            rng.randrange(18, 26),
            group,
            at_once,
            at_once + rng.randrange(4, 12),
            large=large(),
        ),
        Order(uneven, rng.randrange(15, 20), group, 1, 3 * (group + 2), n_steps=3, large=large()),
        Order(low, rng.randrange(7, 12), low + rng.randrange(1, 5), 8, large=large()),
    )


GROUPED_ORDER = Hidden("13-grouped-order", order_cases)
