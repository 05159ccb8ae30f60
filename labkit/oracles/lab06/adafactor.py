"""Lab 06: what torch's Adafactor does with the same gradients, and what it keeps; hints are in `factor_hints`."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.adafactor import FactoredSteps
from labkit.exercises.lab06.playing import play
from labkit.oracles.calls import fields_in_words
from labkit.oracles.lab06.factor_hints import DIAGNOSE
from labkit.oracles.lab06.histories import CLOSE, ONE_BY_ONE, OTHER_STATE_BYTES, STEP_ERRORS, first_off, in_words
from labkit.spec import Budget, CaseRun, MiB, Observation, Oracle

TOO_MANY_BYTES = (
    "Too many bytes stay alive after a step. Of a parameter with two axes or more keep a row and a column of means, "
    "not a second moment of its shape."
)


def by_torch(run: CaseRun[FactoredSteps]) -> dict:
    def make(groups: list[dict]) -> torch.optim.Optimizer:
        return torch.optim.Adafactor(groups, foreach=False, **run.case.settings())

    return play(make, run.case, run.tree)


def kept_bytes(run: CaseRun[FactoredSteps]) -> float:
    """A float32 for each row and each column of the last two axes; for each element of a vector."""
    return sum(4 * n_states(tuple(value.shape)) + OTHER_STATE_BYTES for value in run.tree["weights"].values())


def n_states(shape: tuple[int, ...]) -> int:
    if len(shape) < 2:
        return shape[0] if shape else 1
    n_matrices = 1
    for size in shape[:-2]:
        n_matrices *= size
    return n_matrices * (shape[-2] + shape[-1])


def peak_bytes(run: CaseRun[FactoredSteps]) -> float:
    """Weights, gradients, the weights after each step, the factors; temporary tensors for the largest parameter."""
    sizes = [value.nbytes for value in run.tree["weights"].values()]
    return (2 + run.case.n_steps) * sum(sizes) + kept_bytes(run) + 12 * max(sizes) + MiB


def called(run: Observation) -> str:
    shapes = sorted({tuple(value.shape) for value in run.tree["weights"].values()}, key=len)
    of = ", ".join(map(str, shapes))
    return f"Adafactor(params, {fields_in_words(run.case.settings())}), {in_words(run.case)}, shapes {of}"


ADAFACTOR = Oracle(
    id="06-adafactor",
    expect=by_torch,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    call=called,
    axis="numbers of steps, settings, shapes, and optimizers that are saved and loaded",
    fact=first_off,
    budgets=(Budget("saved_bytes", kept_bytes, TOO_MANY_BYTES), Budget("peak_bytes", peak_bytes, ONE_BY_ONE)),
    errors={
        "0.0 cannot be raised to a negative power": "The count of steps is 0 in the first step. Count the step before "
        "you use it: `step` is the step being taken, from 1 on.",
        **STEP_ERRORS,
    },
    diagnose=DIAGNOSE,
)
