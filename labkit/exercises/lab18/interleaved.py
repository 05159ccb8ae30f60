"""Lab 18: what is asked, given and run for interleaved 1F1B, several chunks of the model on each rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.exercises.lab18.orders import BadEntry, entries_of
from labkit.pipeline import Action, Costs, ScheduleRun, run_schedule
from labkit.spec import Answer, Case, Exercise

Answered = Callable[[int, int, int, int], object]


@dataclass(frozen=True)
class Looped(Case):
    """n_ranks ranks with n_chunks chunks each.

    forward and backward: what a pass through one chunk takes; transfer: what a message takes.
    """

    n_ranks: int = 4
    n_chunks: int = 2
    n_microbatches: int = 8
    forward: float = 1.0
    backward: float = 2.0
    transfer: float = 0.0

    @property
    def n_passes(self) -> int:
        """The forward passes of a rank."""
        return self.n_chunks * self.n_microbatches


def drive_interleaved(ans, case: Looped, tree: dict, stage) -> dict[str, Any]:
    """orders: what was returned for each rank."""
    return {"orders": orders_of(ans.interleaved, case)}


def orders_of(answer: Answered, case: Looped) -> list[object]:
    """What answer(rank, n_ranks, n_chunks, n_microbatches) returns for each rank."""
    return [answer(rank, case.n_ranks, case.n_chunks, case.n_microbatches) for rank in range(case.n_ranks)]


def passes_of(orders: Sequence[object], case: Looped, what: str = "interleaved") -> list[list[Action]]:
    """The orders as passes: chunk c of rank r is stage c * n_ranks + r. Raises BadEntry."""
    passes: list[list[Action]] = []
    for rank, order in enumerate(orders):
        call = f"{what}({rank}, ...)"
        passes.append([])
        for place, entry in enumerate(entries_of(order, ("F", "B"), call, width=3)):
            kind, chunk, microbatch = entry
            if not 0 <= chunk < case.n_chunks:
                raise BadEntry(f"{call}: entry {place} is {entry}: a rank's chunks are 0 to {case.n_chunks - 1}")
            passes[-1].append(Action(kind, chunk * case.n_ranks + rank, microbatch))
    return passes


def play_looped(passes: Sequence[Sequence[Action]], case: Looped) -> ScheduleRun:
    """Raises ScheduleError."""
    costs = Costs.equal(case.n_ranks * case.n_chunks, case.forward, case.backward)
    return run_schedule(passes, costs, case.transfer, n_microbatches=case.n_microbatches)


def run_looped(answer: Answered, case: Looped) -> ScheduleRun:
    """A student's order, played. Raises BadEntry and ScheduleError."""
    return play_looped(passes_of(orders_of(answer, case), case, getattr(answer, "__name__", "order")), case)


INTERLEAVED = Exercise(
    id="18-interleaved",
    title="Smaller stages: interleaved 1F1B",
    points=4,
    minutes=40,
    difficulty=3,
    answers=(Answer("interleaved"),),
    public=(
        Looped(),
        Looped(2, 3, 6, forward=0.5, backward=1.0),
        Looped(4, 2, 8, transfer=0.5),
        Looped(3, 2, 3, backward=1.0),
        Looped(4, 1, 8),
        Looped(1, 2, 2),
        Looped(3, 4, 6),
    ),
    inputs=lambda case, gen: {},
    drive=drive_interleaved,
)
