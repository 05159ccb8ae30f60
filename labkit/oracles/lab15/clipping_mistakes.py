"""Lab 15: the norm that each rank would call that of its gradient, by the usual mistakes. For 15-amp-clip.

The gradients of a step are given, so that its norm depends on no other step but by the scale. Which mistake an answer
made is for the oracle to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from labkit.exercises.lab15.amp_clip import ClippedSteps, finite
from labkit.oracles.hints import once
from labkit.spec import CaseRun

Norms = list[float | None]
"""By rank; None for infinity and NaN."""


class StepOfAll:
    """One step's unscaled gradients: squares of what each rank holds, and of the averaged part that all share."""

    def __init__(self, run: CaseRun[ClippedSteps], step: int) -> None:
        self.case, parts = run.case, run.tree["ranks"]
        self.n = run.case.n_ranks
        self.tables = [part["own_grads"][step] for part in parts]
        self.own = [squares([table]) for table in self.tables]
        self.local = [squares(part["shared_grads"][step]) for part in parts]
        each = zip(*(part["shared_grads"][step] for part in parts), strict=True)
        self.average = squares([torch.stack(same).mean(0) for same in each])
        self.scales = [one["scales"][step - 1] if step else run.case.scale for one in run.got["ranks"]]

    def whole(self) -> float:
        return math.sqrt(self.average + sum(self.own))

    def of_all(self, squared: float) -> list[float]:
        """The same number on every rank."""
        return [math.sqrt(squared)] * self.n


def squares(tensors: list[Tensor]) -> float:
    return sum(float(tensor.square().sum()) for tensor in tensors)


def largest(numbers: list[float]) -> float:
    """As an all-reduce has it: NaN where any is. Python's max() passes over one that does not come first."""
    return float(torch.tensor(numbers, dtype=torch.float64).max())


def own_gradients_averaged(one: StepOfAll) -> list[float]:
    """Where the tables differ in size they cannot be averaged."""
    if len({table.shape for table in one.tables}) > 1:
        return [math.nan] * one.n
    return one.of_all(one.average + one.n * squares([torch.stack(one.tables).mean(0)]))


MISTAKES: dict[str, Callable[[StepOfAll], list[float]]] = {
    "": lambda one: one.of_all(one.average + sum(one.own)),
    "alone": lambda one: [math.sqrt(one.average + own) for own in one.own],
    "alone, before the average": lambda one: [math.sqrt(a + b) for a, b in zip(one.local, one.own, strict=True)],
    "its table alone": lambda one: [math.sqrt(own) for own in one.own],
    "n times": lambda one: one.of_all(one.n * one.average + sum(one.own)),
    "shared only": lambda one: one.of_all(one.average),
    "before the average": lambda one: one.of_all(sum(one.local) + sum(one.own)),
    "of its own version": lambda one: [math.sqrt(local + sum(one.own)) for local in one.local],
    "own averaged": lambda one: one.of_all(one.average + sum(one.own) / one.n),
    "largest of the tables": lambda one: one.of_all(one.average + largest(one.own)),
    "own gradients averaged": own_gradients_averaged,
    "norms added": lambda one: [sum(math.sqrt(one.average + own) for own in one.own)] * one.n,
    "norms added, shared once": lambda one: [math.sqrt(one.average) + sum(map(math.sqrt, one.own))] * one.n,
    "norms of tables added": lambda one: one.of_all(one.average + sum(map(math.sqrt, one.own)) ** 2),
    "of sums": lambda one: one.of_all(one.n**2 * one.average + sum(one.own)),
    "squared": lambda one: [one.average + sum(one.own)] * one.n,
    "own scaled": lambda one: [math.sqrt(one.average + scale**2 * sum(one.own)) for scale in one.scales],
    "shared scaled": lambda one: [math.sqrt(scale**2 * one.average + sum(one.own)) for scale in one.scales],
    "scaled": lambda one: [scale * one.whole() for scale in one.scales],
    "clipped": lambda one: [one.whole() if math.isinf(one.whole()) else min(one.whole(), one.case.max_norm)] * one.n,
}
"""By name, "" for none: what each rank calls the norm of its gradient."""


@once
def norms_with(run: CaseRun[ClippedSteps], mistake: str) -> list[Norms]:
    """The norms of every step, had all ranks made this mistake."""
    steps = (StepOfAll(run, step) for step in range(run.case.n_steps))
    return [[finite(norm) for norm in MISTAKES[mistake](one)] for one in steps]


def alike(some: list[Norms], others: list[Norms], rtol: float) -> bool:
    pairs = [pair for step in zip(some, others, strict=True) for pair in zip(*step, strict=True)]
    return all(a is b if a is None or b is None else math.isclose(a, b, rel_tol=rtol) for a, b in pairs)
