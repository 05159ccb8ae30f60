"""Lab 16: how far two right runs of sharded layers may end apart, which add up float32 numbers in orders of their own.

What a mistake changes is not worked out here.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.exercises.lab16.fsdp_unit import N_ROWS, Layers, draw_rows, draw_weight
from labkit.oracles.hints import once
from labkit.oracles.lab16.one_process import ROUNDING
from labkit.spec import CaseRun, Tolerance

DEVIATIONS = 6.0
"""A normal deviate is larger than so many standard deviations twice in a thousand million."""


@once
def bound(run: CaseRun[Layers]) -> Tolerance:
    """Twice DEVIATIONS standard deviations, as both runs differ from the exact numbers.

    One bound in absolute numbers for all that comes back: a sum whose terms cancel is small, and no more exact.
    """
    case = run.case
    weights = [draw_weight(case, run.tree["seed"], k).double() for k in range(len(case.shapes))]
    sizes, variances = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    largest = 0.0
    for one in run.tree["ranks"]:
        x, grad_y = (part.double() for part in draw_rows(case, one["seed"]))
        of_y, of_x, gradients = _variances(weights, x, grad_y)
        largest = max(largest, float(of_y.max()), float(of_x.max()))
        for k, (gradient, variance) in enumerate(gradients):
            sizes[k] += gradient.abs() / case.n_ranks
            variances[k] += variance / case.n_ranks**2
    for size, variance in zip(sizes, variances, strict=True):
        # A mean is a sum that is divided, or a sum of what was divided.
        largest = max(largest, float((variance + _of_sum(2 * case.n_ranks, size)).max()))
    return Tolerance(atol=2 * DEVIATIONS * largest**0.5)


def _of_sum(n_terms: int, sizes: Tensor) -> Tensor:
    """The variance of sums of so many terms, whose absolute values add up to sizes.

    In any order a sum is rounded once a term, by 2⁻²⁴ of a partial sum at most, and no partial sum is larger than
    sizes. Roundings go up as often as down, so n of them add up like √n (Higham and Mary, SIAM J. Sci. Comput. 41).
    """
    return n_terms * (ROUNDING * sizes) ** 2


def _variances(weights: list[Tensor], x: Tensor, grad_y: Tensor) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
    """Of a rank the variances of y, of x's gradient, and of each weight's gradient, with that gradient.

    A factor's variance times the square of the other factor is the product's; a sum's are added up.
    """
    inputs, of_inputs = [x], [torch.zeros_like(x)]
    for weight in weights:
        rounded = _of_sum(weight.shape[1], inputs[-1].abs() @ weight.t().abs())
        of_inputs.append(of_inputs[-1] @ weight.t() ** 2 + rounded)
        inputs.append(inputs[-1] @ weight.t())
    grad, of_grad, gradients = grad_y, torch.zeros_like(grad_y), []
    for weight, before, of_before in zip(reversed(weights), reversed(inputs[:-1]), reversed(of_inputs[:-1])):
        rounded = _of_sum(N_ROWS, grad.t().abs() @ before.abs())
        gradients.insert(0, (grad.t() @ before, of_grad.t() @ before**2 + grad.t() ** 2 @ of_before + rounded))
        of_grad = of_grad @ weight**2 + _of_sum(weight.shape[0], grad.abs() @ weight.abs())
        grad = grad @ weight
    return of_inputs[-1], of_grad, gradients
