"""Lab 13: the order in which programs take the tiles of a product. What is asked, given and run."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

from labkit.spec import Answer, Case, Exercise

BLOCK_BYTES = 128 * 64 * 2
"""A block of 128 × 64 float16: what a program reads of each factor in one step."""


@dataclass(frozen=True)
class Order(Case):
    """n_tiles_m × n_tiles_n tiles of the result, and the chip that computes them.

    at_once: programs that run at the same time. n_kept: blocks that the cache holds, enough for what these read in one
    step and too few for all of A or B. n_steps: along the inner dimension. large: rows and columns of the tiles of a
    product so large that a list of them takes megabytes.
    """

    n_tiles_m: int = 12
    n_tiles_n: int = 16
    group: int = 4
    at_once: int = 16
    n_kept: int = 24
    n_steps: int = 6
    large: tuple[int, int] = (300, 300)


def far_programs(case: Order) -> range:
    """Some programs of the large product: the first of a group in its middle, three columns of it."""
    n_tiles_m, n_tiles_n = case.large
    first = n_tiles_m // case.group // 2 * case.group * n_tiles_n
    return range(first, first + 3 * case.group)


def held_bytes(call: Callable[[], object]) -> int:
    """The most bytes of Python's own memory that a call holds."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before_bytes = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before_bytes
    finally:
        if not was_tracing:
            tracemalloc.stop()


def drive_order(ans, case: Order, tree: dict, stage) -> dict:
    """The tiles of all programs, and of some of the large product, as the answer gives them; what finding one takes."""
    n_programs, far = case.n_tiles_m * case.n_tiles_n, far_programs(case)
    held = held_bytes(lambda: ans.tile_of(far[0], *case.large, case.group))
    return {
        "tiles": [ans.tile_of(pid, case.n_tiles_m, case.n_tiles_n, case.group) for pid in range(n_programs)],
        "far_tiles": [ans.tile_of(pid, *case.large, case.group) for pid in far],
        "held_bytes": held,
    }


GROUPED_ORDER = Exercise(
    id="13-grouped-order",
    title="An order of tiles that uses the cache",
    points=0.6,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("tile_of"),),
    public=(
        Order(),
        Order(13, 20, group=5, at_once=20, n_kept=28, large=(290, 320)),
        Order(16, 12, at_once=1, n_kept=18, n_steps=3, large=(331, 280)),
        Order(3, 9, group=8, at_once=8, large=(310, 310)),
    ),
    inputs=lambda case, gen: {},
    drive=drive_order,
    forbids=("sorted",),
)
