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
    step and too few for all of A or B. n_steps: along the inner dimension.
    """

    n_tiles_m: int = 12
    n_tiles_n: int = 16
    group: int = 4
    at_once: int = 16
    n_kept: int = 24
    n_steps: int = 6


ONE_OF_MANY = (77_777, 300, 300, 8)
"""A program of a product so large that a list of its tiles takes megabytes."""


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
    """The tile of every program, as the answer gives it, and what finding one among many takes."""
    n_programs = case.n_tiles_m * case.n_tiles_n
    return {
        "tiles": [ans.tile_of(pid, case.n_tiles_m, case.n_tiles_n, case.group) for pid in range(n_programs)],
        "held_bytes": held_bytes(lambda: ans.tile_of(*ONE_OF_MANY)),
    }


GROUPED_ORDER = Exercise(
    id="13-grouped-order",
    title="An order of tiles that uses the cache",
    points=1.5,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("tile_of"),),
    public=(
        Order(),
        Order(13, 20, group=5, at_once=20, n_kept=28),
        Order(16, 12, at_once=1, n_kept=18, n_steps=3),
        Order(3, 9, group=8, at_once=8),
    ),
    inputs=lambda case, gen: {},
    drive=drive_order,
    forbids=("sorted",),
)
