"""Lab 17: what ranks get that cut an MLP, or put its parts together, in a wrong way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional as F

from labkit.exercises.lab17.tp_mlp import MLP, draw_micro_batches, draw_weights
from labkit.oracles.hints import once
from labkit.oracles.lab17.mlp_values import of_rank
from labkit.oracles.lab17.ranks import Found, cut, played
from labkit.spec import CANNOT_TELL, CaseRun


@dataclass(frozen=True)
class Slip:
    """A mistake in how the parts are put together.

    x_factor: by what the input is multiplied on its way in. y_factor: the sum of the parts, and back_factor: the
    gradient on its way back into the parts. own_sum: no rank adds the others' parts. own_x: nor their gradients of x.
    adds_b_in, has_gelu: whether they are there.
    """

    x_factor: float = 1
    y_factor: float = 1
    back_factor: float = 1
    own_sum: bool = False
    own_x: bool = False
    adds_b_in: bool = True
    has_gelu: bool = True


@once
def result(run: CaseRun[MLP], slip: Slip) -> list[Found]:
    """By rank, what comes of whole weights that are cut, by autograd."""
    case, n = run.case, run.case.n_ranks
    w_in, b_in, w_out, b_out = (one.requires_grad_() for one in draw_weights(case, run.tree["seed"]))
    found: list[Found] = [{"y": [], "x": []} for _ in range(n)]
    for x, grad in draw_micro_batches(case, run.tree["seed"]):
        gradients, parts = [], []
        for rank in range(n):
            mine = x.clone().requires_grad_()
            bias = cut(b_in, 0, rank, n) * slip.adds_b_in
            product = F.linear(mine * slip.x_factor, cut(w_in, 0, rank, n), bias)
            hidden = F.gelu(product) if slip.has_gelu else product
            part = F.linear(hidden, cut(w_out, 1, rank, n))
            part.backward(grad * slip.back_factor)
            gradients.append(mine.grad / slip.x_factor)
            parts.append(part.detach())
        F.linear(torch.zeros_like(x), torch.zeros(case.hidden, case.hidden), b_out).backward(grad)
        for rank, one in enumerate(found):
            y = parts[rank] if slip.own_sum else torch.stack(parts).sum(0) * slip.y_factor
            own = gradients[rank] if slip.own_x else torch.stack(gradients).sum(0)
            one["y"].append(y + b_out.detach())
            one["x"].append(own if case.trains_input else None)
    grads = {"w_in": w_in.grad, "b_in": b_in.grad, "w_out": w_out.grad, "b_out": b_out.grad}
    return [one | of_rank(grads, rank, n) for rank, one in enumerate(found)]


def slipped(slip: Slip, only: Sequence[str] = ("y", "x", "shapes", "grads")):
    """A hint's condition, of all that came back or of this much. Factors of 0 stand for the number of ranks, those of
    -1 for one divided by it."""

    def change(run: CaseRun[MLP], rank: int, right: Found) -> Found:
        n = run.case.n_ranks
        of = {0: n, -1: 1 / n}
        factors = {name: of.get(value, value) for name, value in vars(slip).items() if name.endswith("factor")}
        return result(run, replace(slip, **factors))[rank]

    return played(change, only)


def b_out_grad(factor) -> Any:
    """A hint's condition: only the gradient of b_out is off, by factor(number of ranks)."""
    return played(
        lambda run, rank, one: {"grads": one["grads"] | {"b_out": one["grads"]["b_out"] * factor(run.case.n_ranks)}}
    )


def y_plus(n_biases) -> Any:
    """A hint's condition: the output has n_biases(number of ranks) times b_out too much."""

    def change(run: CaseRun[MLP], rank: int, one: Found) -> Found:
        b_out = draw_weights(run.case, run.tree["seed"])[3]
        return {"y": [y + n_biases(run.case.n_ranks) * b_out for y in one["y"]]}

    return played(change, only=("y",))


def b_out_has_none(run: CaseRun[MLP]) -> Any:
    """b_out has no gradient, or one of zeros, on some ranks, and one on others."""
    if run.case.n_ranks == 1:
        return CANNOT_TELL
    grads = [one["grads"]["b_out"] for one in run.got["ranks"]]
    empty = [grad is None or not grad.any() for grad in grads]
    return any(empty) and not all(empty)


def no_gradient(run: CaseRun[MLP]) -> bool:
    return all(one["grads"]["w_in"] is None for one in run.got["ranks"])


def x_has_none(run: CaseRun[MLP]) -> Any:
    if not run.case.trains_input:
        return CANNOT_TELL
    return all(grad is None for one in run.got["ranks"] for grad in one["x"])


def rounded_up(run: CaseRun[MLP], rank: int) -> dict[str, tuple[int, ...]]:
    """Parts as `chunk` cuts them: as long as the longest, and the last one shorter."""
    size = -(-run.case.ffn // run.case.n_ranks)
    mine = max(min(size, run.case.ffn - rank * size), 0)
    return {"w_in": (mine, run.case.hidden)}


def rounded_down(run: CaseRun[MLP], rank: int) -> dict[str, tuple[int, ...]]:
    return {"w_in": (run.case.ffn // run.case.n_ranks, run.case.hidden)}


def cut_the_other_way(run: CaseRun[MLP], rank: int) -> dict[str, tuple[int, ...]]:
    mine = len(torch.arange(run.case.hidden).tensor_split(run.case.n_ranks)[rank])
    return {"w_in": (run.case.ffn, mine)}


def whole(run: CaseRun[MLP], rank: int) -> dict[str, tuple[int, ...]]:
    return {"w_in": (run.case.ffn, run.case.hidden), "w_out": (run.case.hidden, run.case.ffn)}
