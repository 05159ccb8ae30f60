"""Lab 18: what is asked, given and run for schedules with the backward pass split in two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.exercises.lab18.orders import one_stage_each
from labkit.pipeline import Action, Costs, ScheduleRun, run_schedule
from labkit.spec import Answer, Case, Exercise, Run

Answered = Callable[..., Sequence[object]]


@dataclass(frozen=True)
class Split(Case):
    """n_microbatches through stages with these times, each of which may hold `memory` micro-batches.

    best: the shortest step that is known: the published one where all times are equal, else found by looking at all.
    """

    forward: tuple[float, ...]
    input_grad: tuple[float, ...]
    weight_grad: tuple[float, ...]
    n_microbatches: int
    memory: int
    best: float

    @property
    def n_stages(self) -> int:
        return len(self.forward)

    @property
    def costs(self) -> Costs:
        return Costs(self.forward, self.input_grad, self.weight_grad)

    @property
    def is_uniform(self) -> bool:
        """All passes of all stages take equally long."""
        return len({*self.forward, *self.input_grad, *self.weight_grad}) == 1

    @property
    def busy(self) -> float:
        """What all stages together compute."""
        return self.n_microbatches * sum(map(self.costs.time_of_micro_batch, range(self.n_stages)))


def uniform(n_stages: int, n_microbatches: int, time: float = 1.0) -> Split:
    """All passes take equally long. ZB-H1 of the paper: every stage waits for n_stages - 1 of them."""
    times = (time,) * n_stages
    best = time * (3 * n_microbatches + n_stages - 1)
    return Split(times, times, times, n_microbatches, n_stages, best)


def orders_of(answer: Answered, case: Split) -> Any:
    """What the answer returns for all stages."""
    times = [list(each) for each in (case.forward, case.input_grad, case.weight_grad)]
    return answer(*times, case.n_microbatches, case.memory)


def passes_of(orders: object, case: Split, what: str = "zero_bubble") -> list[list[Action]]:
    """The orders of all stages as passes. Raises BadEntry."""
    stages = orders if isinstance(orders, list | tuple) else [orders]
    padded = [*stages, *[[]] * (case.n_stages - len(stages))]
    return one_stage_each(padded, what, ("F", "I", "W"))


def play_split(passes: Sequence[Sequence[Action]], case: Split) -> ScheduleRun:
    """Raises ScheduleError, also where a stage holds too much."""
    return run_schedule(passes, case.costs, memory_cap=case.memory, n_microbatches=case.n_microbatches)


def run_split(answer: Answered, case: Split) -> ScheduleRun:
    """A student's schedule, played. Raises BadEntry and ScheduleError."""
    return play_split(passes_of(orders_of(answer, case), case, getattr(answer, "__name__", "order")), case)


def drive_zero_bubble(ans, case: Split, tree: dict, stage) -> dict[str, Any]:
    """orders: what was returned for all stages."""
    return {"orders": orders_of(ans.zero_bubble, case)}


UNEVEN = Split((2.0, 1.0, 3.0), (1.0, 2.0, 3.5), (1.5, 2.0, 1.0), 4, 3, best=34.5)
"""Of the notebook, too."""

ZERO_BUBBLE = Exercise(
    id="18-zero-bubble",
    title="Fill the bubble",
    points=1,
    optional=True,
    minutes=60,
    difficulty=3,
    answers=(Answer("zero_bubble"),),
    public=(
        uniform(4, 8),
        uniform(2, 5, time=0.5),
        uniform(3, 12),
        UNEVEN,
        Split((1.0, 4.0), (2.0, 1.0), (3.0, 0.5), 4, 2, best=28.0),
        # A thousand orders that are drawn pass by pass are too few here.
        Split((3.5, 2.0, 1.0), (2.5, 3.5, 1.5), (4.0, 3.0, 2.0), 4, 3, best=41.0),
        uniform(1, 2),
    ),
    inputs=lambda case, gen: {},
    run=Run(wall_s=60.0),
    drive=drive_zero_bubble,
)
