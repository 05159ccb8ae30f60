"""Lab 17: what is true of a cut MLP: one process's values and gradients, one all-reduce each way, parts of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab17.layers import BACKWARD, BUILT, FORWARD, shape_of, some
from labkit.exercises.lab17.tp_mlp import MLP, NAMES, draw_micro_batches, draw_weights
from labkit.oracles.hints import once
from labkit.oracles.lab17.ranks import (
    CLOSE,
    ROOM_BYTES,
    SHAPES,
    WHICH_WAY,
    Found,
    all_reduce_bytes,
    calls_each_way,
    cut,
    least_all_reduce_bytes,
    places_of,
    played,
    same_bits,
    sent_each_way,
    shapes_are,
    times,
    too_many_calls,
)
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle

CUT_ALONG = {"w_in": 0, "b_in": 0, "w_out": 1}


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


def passes(case: MLP) -> int:
    """All-reduces of one micro-batch."""
    return 1 + case.trains_input


def most_bytes(run: CaseRun[MLP]) -> int:
    case = run.case
    n_elements = case.hidden * int(torch.Size(case.tokens).numel())
    return max(case.n_micro * passes(case) * all_reduce_bytes(n_elements, case.n_ranks), 1)


def least(case: MLP) -> int:
    """What all ranks together send at least to sum a tensor of the shape of x."""
    return least_all_reduce_bytes(case.hidden * int(torch.Size(case.tokens).numel()), case.n_ranks)


def held(run: CaseRun[MLP]) -> int:
    """The largest parts."""
    case = run.case
    return 4 * (-(-case.ffn // case.n_ranks) * (2 * case.hidden + 1) + case.hidden) + ROOM_BYTES


def most_at_once(run: CaseRun[MLP]) -> int:
    """While the layer is built, whole weights, a copy of them, and parts; later parts, gradients and activations."""
    case = run.case
    n_tokens = int(torch.Size(case.tokens).numel())
    return held(run) + 4 * (4 * case.ffn * case.hidden + 8 * n_tokens * (case.hidden + case.ffn)) + ROOM_BYTES


def in_words(run: Observation) -> str:
    case = run.case
    words = f"hidden={case.hidden}, ffn={case.ffn}, x of shape {(*case.tokens, case.hidden)}"
    words += f" on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}"
    words += f", {case.n_micro} micro-batches" * (case.n_micro > 1)
    return words + ", x needs no gradient" * (not case.trains_input)


BIAS = "b_out was added on every rank, and then the sum counted it n times. Add it after the all-reduce."
SUM_BACK = (
    "The weights' gradients are n times too large: the gradient of the output was all-reduced, too. Every rank has the "
    "whole of it already, so the sum at the end of the layer lets it through as it is."
)

TP_MLP = Oracle(
    id="17-tp-mlp",
    call=in_words,
    places=places_of(NAMES),
    expect=expect,
    tolerance=CLOSE,
    judge=(
        same_bits,
        calls_each_way(lambda case: 1, lambda case: (passes(case) - 1,) * 2),
        sent_each_way(least, lambda case: least(case) * case.trains_input),
    ),
    axis="columns that do not divide, more ranks than columns, and several micro-batches",
    budgets=(
        Budget(
            "collectives",
            lambda run: max(run.case.n_micro * passes(run.case), 2),
            "Too many calls: one all-reduce in the forward pass and one in the backward pass.",
        ),
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes: only tensors of the shape of x and y are summed. The ffn columns between the two matrices "
            "stay where they are, and so do all weights' gradients.",
        ),
        Budget(
            "held_bytes",
            held,
            "After the construction a rank holds more than its parts. A slice is a view that keeps the whole weight "
            "alive: clone it.",
            at=BUILT,
        ),
        Budget(
            "peak_bytes",
            most_at_once,
            "At some moment a rank holds more than two copies of the whole weights, or many large activations.",
        ),
    ),
    unusable={
        "'ParallelMLP' object has no attribute": "Keep the parts as nn.Parameter, under the names w_in, "
        "b_in, w_out and b_out.",
    },
    errors={SHAPES: WHICH_WAY},
    diagnose=(
        Hint(
            shapes_are(cut_the_other_way),
            "w_in is cut along its columns, so each rank computes a part of a sum for every one of the ffn columns, "
            "and GELU(a + b) is not GELU(a) + GELU(b). Cut the rows of w_in: F.linear multiplies by the transpose.",
        ),
        Hint(shapes_are(whole), "Every rank keeps the whole weights. Keep this rank's part only."),
        Hint(
            shapes_are(rounded_up),
            "The parts are rounded up, so the last rank has fewer or nothing. `tensor_split` gives the first ranks one "
            "row more each where it does not come out even.",
        ),
        Hint(
            shapes_are(rounded_down),
            "The number of rows was rounded down, and the last rows belong to no rank. `tensor_split` leaves none out.",
        ),
        Hint(no_gradient, "The weights have no gradient: keep them as nn.Parameter, and compute without no_grad."),
        Hint(
            x_has_none,
            "x has no gradient: backward returns one for each argument of forward, None for those that are no tensor.",
        ),
        Hint(y_plus(lambda n: n - 1), BIAS),
        Hint(y_plus(lambda n: -1), "b_out is missing in the output."),
        Hint(y_plus(lambda n: 1 / n - 1), "b_out was divided by the number of ranks, and then added once."),
        Hint(slipped(Slip(adds_b_in=False), only=("y",)), "b_in is missing: it is added before GELU."),
        Hint(slipped(Slip(has_gelu=False), only=("y",)), "GELU is missing between the two matrices."),
        Hint(
            b_out_has_none,
            "b_out was added on one rank alone, so only that rank has its gradient. Every rank has b_out: add it after "
            "the all-reduce, on all of them.",
        ),
        Hint(
            b_out_grad(lambda n: n),
            "The gradient of b_out is n times too large. Each rank has the whole gradient of the output, and so that "
            "of b_out: do not sum it over the ranks.",
        ),
        Hint(
            b_out_grad(lambda n: 1 / n),
            "The gradient of b_out is one n-th of what it should be: every rank added a part of b_out before the sum. "
            "The output is right, and no loss shows it. Add all of it after the all-reduce.",
        ),
        Hint(
            slipped(Slip(own_sum=True)),
            "Each rank returned its own part of the sum: an all-reduce at the end of the layer is missing.",
        ),
        Hint(
            slipped(Slip(own_x=True)),
            "The gradient of x is each rank's own part. Every rank used the whole x, so its gradient is the sum over "
            "the ranks: the all-reduce of the backward pass is missing where x comes in.",
        ),
        Hint(
            slipped(Slip(own_sum=True, back_factor=0)),
            "The function at the end of the layer lets the output through and sums its gradient. It should be the "
            "other way round there: sum the output, and let the gradient through.",
        ),
        Hint(
            slipped(Slip(own_sum=True, own_x=True, x_factor=0, back_factor=0)),
            "The two functions are exchanged. Where x comes in, x goes through and its gradient is summed. At the end, "
            "the output is summed and its gradient goes through.",
        ),
        Hint(slipped(Slip(back_factor=0)), SUM_BACK),
        Hint(slipped(Slip(back_factor=0, own_x=True)), SUM_BACK),
        Hint(
            slipped(Slip(x_factor=0)),
            "x was summed over the ranks on its way in. Every rank has the same x: in the forward pass it goes through "
            "as it is, and only its gradient is summed.",
        ),
        Hint(
            slipped(Slip(y_factor=-1)),
            "The output is the mean of the parts. They are parts of one sum: op='sum'.",
        ),
        Hint(
            played(lambda run, rank, one: {"x": times(one["x"], 1 / run.case.n_ranks)}),
            "The gradient of x is the mean over the ranks. The ranks' gradients are parts of one sum: op='sum'.",
        ),
        Hint(
            too_many_calls(FORWARD, lambda case: 1),
            "The values are right, but the forward pass communicates more than once. Between the two matrices nothing "
            "is sent: GELU works on each column by itself, and a rank has the columns that its part of w_out needs.",
        ),
        Hint(
            too_many_calls(BACKWARD, lambda case: passes(case) - 1),
            "The values are right, but the backward pass communicates more than once: only the gradient of x is "
            "summed. A rank's gradients of its own parts are complete.",
        ),
    ),
)
