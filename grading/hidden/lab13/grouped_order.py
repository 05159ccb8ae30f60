"""Lab 13: hidden cases of the order of tiles."""

from __future__ import annotations

import random

from grading.hidden import Hidden, drawn
from labkit.exercises.lab13.grouped_order import Order
from labkit.oracles.lab13.grouped_order import arranged, limit_bytes, read_bytes


def columns_read_more(case: Order) -> bool:
    """Whether groups of columns fall short: often they do as well, as where one group takes the whole product."""
    return read_bytes(case, arranged(case, lambda tile: (tile[1] // case.group, *tile))) > limit_bytes(case)


def order_cases(rng: random.Random) -> tuple[Order, ...]:
    """Groups that divide the rows and groups that do not, many programs at once and one by one, and a low result."""
    group = rng.randrange(4, 7)
    uneven = group * rng.randrange(3, 5) + rng.randrange(1, group)
    at_once = group * rng.randrange(group, group + 3)

    def large() -> tuple[int, int]:
        return rng.randrange(280, 340), rng.randrange(280, 340)

    def lower_than_a_group() -> Order:
        low = rng.randrange(2, 5)
        return Order(low, rng.randrange(7, 12), low + rng.randrange(1, 5), 8, large=large())

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
        drawn(lower_than_a_group, columns_read_more),
    )


GROUPED_ORDER = Hidden("13-grouped-order", order_cases)
