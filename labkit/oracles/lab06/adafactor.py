"""Lab 06: what torch's Adafactor does with the same gradients, and what the usual mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.adafactor import FactoredSteps
from labkit.exercises.lab06.playing import play
from labkit.oracles.calls import fields_in_words
from labkit.oracles.lab06.factor_mistakes import moved_as
from labkit.oracles.lab06.histories import CLOSE, ONE_BY_ONE, first_off, in_words, nothing_moved
from labkit.spec import Budget, CaseRun, Hint, KiB, MiB, Observation, Oracle

SLACK_BYTES = 4 * KiB
"""For each tensor: its count of steps and what Python keeps."""
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
    return sum(4 * n_states(tuple(value.shape)) + SLACK_BYTES for value in run.tree["weights"].values())


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
    diagnose=(
        Hint(nothing_moved, "No weight has moved: change the parameter in place, with p.sub_(...)."),
        Hint(
            moved_as("full"),
            "The second moment is that of every element, as Adam's. Adafactor keeps the means over rows and over "
            "columns alone, and puts an estimate together from them.",
        ),
        Hint(
            moved_as("no division"),
            "The estimate is row times column, and not divided by the mean of the row: both factors hold the overall "
            "size, so it counts twice.",
        ),
        Hint(
            moved_as("one mean for all"),
            "The mean of the row factor was taken over all matrices of a parameter with three axes. Each matrix is "
            "divided by the mean of its own: row.mean(-2, keepdim=True).",
        ),
        Hint(
            moved_as("first two axes"),
            "A parameter with three axes was factored over its first two. The rows and columns are the last two axes.",
        ),
        Hint(
            moved_as("no clipping"),
            "The update is not clipped: where its root mean square is above d, divide it by rms / d.",
        ),
        Hint(
            moved_as("always normalized"),
            "The update is always divided by its root mean square. Clipping makes it smaller only: the divisor is "
            "max(1, rms / d).",
        ),
        Hint(
            moved_as("norm for rms"),
            "The update is clipped by its norm. The root mean square is norm / sqrt(number of elements).",
        ),
        Hint(
            moved_as("no decay of lr"),
            "The learning rate does not fall: it is min(lr, 1 / sqrt(step)).",
        ),
        Hint(
            moved_as("lr times decay"),
            "The learning rate is min(lr, 1 / sqrt(step)), the smaller of the two, and not their product.",
        ),
        Hint(
            moved_as("no scale of the weight"),
            "The step does not depend on the size of the weights: it is multiplied by max(eps2, rms of the parameter), "
            "eps2 being the second number of eps.",
        ),
        Hint(
            moved_as("fixed beta"),
            "The running means have a fixed factor. In step t the new value counts t**beta2_decay: all of it in the "
            "first step, less and less later.",
        ),
        Hint(moved_as("no root"), "The root is missing: the gradient is divided by the root of the estimate."),
        Hint(
            moved_as("state lost"),
            "After load_state_dict the moments began at zero again: keep everything in self.state[p].",
        ),
    ),
)
