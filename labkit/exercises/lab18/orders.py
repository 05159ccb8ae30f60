"""Lab 18: the orders that students write, as lists of short entries, read as passes and played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from labkit.pipeline import Action, Costs, ScheduleRun, run_schedule
from labkit.spec import Case
from labkit.tree import told


@dataclass(frozen=True)
class Pipe(Case):
    """n_microbatches go through n_stages, one on each rank.

    forward, backward: what a pass through each stage takes; without them 1 and 2. transfer: what a message takes.
    """

    n_stages: int = 4
    n_microbatches: int = 8
    forward: tuple[float, ...] = ()
    backward: tuple[float, ...] = ()
    transfer: float = 0.0

    @property
    def costs(self) -> Costs:
        return Costs.of(self.forward or [1.0] * self.n_stages, self.backward or None)


class BadEntry(ValueError):
    """What was returned is no list of passes."""


def entries_of(order: object, kinds: Sequence[str], what: str, width: int = 2) -> list[tuple[Any, ...]]:
    """One rank's order as tuples such as ("F", 3). what: the call that returned it. Raises BadEntry."""
    shape = "a pair such as ('F', 0)" if width == 2 else "a triple such as ('F', 0, 0)"
    if not isinstance(order, list | tuple):
        raise BadEntry(f"{what} returned {told(order)}: it has to be a list, and each entry {shape}")
    for place, entry in enumerate(order):
        is_entry = isinstance(entry, list | tuple) and len(entry) == width and entry[0] in kinds
        if not is_entry or not all(map(_is_whole, entry[1:])):
            listed = ", ".join(map(repr, kinds[:-1])) + f" or {kinds[-1]!r}"
            raise BadEntry(f"{what}: entry {place} is {told(entry)}. It has to be {shape}, with {listed} first")
    return [(entry[0], *map(int, entry[1:])) for entry in order]


def _is_whole(number: object) -> bool:
    """Also one of NumPy's; True and False are none."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def one_stage_each(orders: Sequence[object], what: str, kinds: Sequence[str] = ("F", "B")) -> list[list[Action]]:
    """The orders of all stages, one on each rank. Raises BadEntry."""
    return [
        [Action(kind, stage, microbatch) for kind, microbatch in entries_of(order, kinds, f"{what}({stage}, ...)")]
        for stage, order in enumerate(orders)
    ]


def orders_of(answer: Callable[[int, int, int], object], case: Pipe) -> list[object]:
    """What answer(stage, n_stages, n_microbatches) returns for each stage."""
    return [answer(stage, case.n_stages, case.n_microbatches) for stage in range(case.n_stages)]


def play(orders: Sequence[Sequence[Action]], case: Pipe) -> ScheduleRun:
    """Raises ScheduleError."""
    return run_schedule(orders, case.costs, case.transfer, n_microbatches=case.n_microbatches)


def run_of(answer: Callable[[int, int, int], object], case: Pipe = Pipe()) -> ScheduleRun:
    """A student's order, played. Raises BadEntry and ScheduleError."""
    return play(one_stage_each(orders_of(answer, case), getattr(answer, "__name__", "order")), case)
