"""Lab 17: what one process has that works out a whole MLP, by autograd, and each rank's parts of its gradients."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab17.layers import shape_of, some
from labkit.exercises.lab17.tp_mlp import MLP, NAMES, draw_micro_batches, draw_weights
from labkit.oracles.lab17.ranks import Found, cut
from labkit.spec import CaseRun

CUT_ALONG = {"w_in": 0, "b_in": 0, "w_out": 1}
"""The dimension along which each weight is cut. Every rank has all of the others."""


def part_of(name: str, whole: Tensor, rank: int, n_ranks: int) -> Tensor:
    return cut(whole, CUT_ALONG[name], rank, n_ranks) if name in CUT_ALONG else whole


def expect(run: CaseRun[MLP]) -> dict[str, Any]:
    """What one process has, by autograd, and each rank's parts of the weights' gradients."""
    case = run.case
    weights = [one.requires_grad_() for one in draw_weights(case, run.tree["seed"])]
    w_in, b_in, w_out, b_out = weights
    found: Found = {"y": [], "x": []}
    for x, grad in draw_micro_batches(case, run.tree["seed"]):
        x.requires_grad_(case.trains_input)
        y = F.linear(F.gelu(F.linear(x, w_in, b_in)), w_out, b_out)
        y.backward(grad)
        found["y"].append(y.detach())
        found["x"].append(x.grad)
    grads = {name: one.grad for name, one in zip(NAMES, weights, strict=True)}
    return {"ranks": [found | of_rank(grads, rank, case.n_ranks) for rank in range(case.n_ranks)]}


def of_rank(grads: dict[str, Tensor], rank: int, n_ranks: int) -> Found:
    mine = {name: part_of(name, grad, rank, n_ranks) for name, grad in grads.items()}
    return {
        "shapes": {name: shape_of(part) for name, part in mine.items()},
        "grads": {name: some(part) for name, part in mine.items()},
    }
