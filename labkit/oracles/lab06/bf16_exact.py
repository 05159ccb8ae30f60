"""Lab 06: where AdamW in bfloat16 ends on average, in exact arithmetic; and how far rounding by chance scatters it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.exercises.lab06.bf16_states import Bf16Steps
from labkit.oracles.hints import once
from labkit.spec import CaseRun

GAP = 2.0**-7
"""Of bfloat16 from 1 to 2, and twice that from 0.5 to 1."""

MISTAKES = (
    *("no decay", "decay not times lr", "l2", "no correction", "no first correction", "no second correction"),
    *("betas swapped", "no root", "uphill", "eps before the correction"),
)
"""Adam's, which `exactly` can make."""


@dataclass(frozen=True)
class Ended:
    """Weights and moments at the end, float64, each (n_weights,).

    variance: what rounding by chance makes of a weight's; of_mean: the most that it makes of a first moment's.
    """

    weight: Tensor
    mean: Tensor
    square: Tensor
    variance: Tensor
    of_mean: Tensor


@once
def exactly(run: CaseRun[Bf16Steps], mistake: str = "") -> Ended:
    """Where float64 arithmetic ends. mistake: one of Adam's."""
    case = run.case
    weight, grads = run.tree["weights"].double(), run.tree["grads"].double()
    mean, square, variance, of_mean = (torch.zeros_like(weight) for _ in range(4))
    beta1, beta2 = (case.beta2, case.beta1) if mistake == "betas swapped" else (case.beta1, case.beta2)
    for step, grad in enumerate(grads, start=1):
        if mistake == "l2":
            grad = grad + case.weight_decay * weight
        mean = beta1 * mean + (1 - beta1) * grad
        square = beta2 * square + (1 - beta2) * grad**2
        one = 1 if mistake in ("no correction", "no first correction") else 1 - beta1**step
        two = 1 if mistake in ("no correction", "no second correction") else 1 - beta2**step
        shrunk = 0.0 if mistake in ("l2", "no decay") else case.lr * case.weight_decay
        shrunk = case.weight_decay if mistake == "decay not times lr" else shrunk
        gap = gap_at(weight)
        of_mean = beta1**2 * of_mean + gap_at(mean) ** 2 / 4
        below = square / two if mistake == "no root" else (square / two).sqrt()
        eps = case.eps / two**0.5 if mistake == "eps before the correction" else case.eps
        adam = case.lr * (mean / one) / (below + eps)
        moved = weight * shrunk + (-adam if mistake == "uphill" else adam)
        share = (moved.abs() / gap) % 1  # of a gap, which is the chance of one gap more
        weight = weight - moved
        variance = variance + gap**2 * share * (1 - share)
    return Ended(weight, mean, square, variance, of_mean)


def gap_at(values: Tensor) -> Tensor:
    """How far bfloat16 numbers are apart there."""
    return 2.0 ** (torch.frexp(values).exponent - 8).double()
