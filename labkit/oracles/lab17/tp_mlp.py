"""Lab 17: the oracle of a cut MLP: one process's values and gradients, one all-reduce each way, parts of weights.

What one process has stands in `mlp_values`, and what mistakes make in `mlp_mistakes`.
"""

from __future__ import annotations

import torch

from labkit.exercises.lab17.layers import BACKWARD, FORWARD
from labkit.exercises.lab17.tp_mlp import MLP, NAMES
from labkit.oracles.lab17.mlp_mistakes import (
    Slip,
    b_out_grad,
    b_out_has_none,
    cut_the_other_way,
    no_gradient,
    rounded_down,
    rounded_up,
    slipped,
    whole,
    x_has_none,
    y_plus,
)
from labkit.oracles.lab17.mlp_values import expect
from labkit.oracles.lab17.ranks import (
    CLOSE,
    ROOM_BYTES,
    SHAPES,
    WHICH_WAY,
    all_reduce_bytes,
    calls_each_way,
    least_all_reduce_bytes,
    memory_budgets,
    places_of,
    played,
    same_bits,
    sent_each_way,
    shapes_are,
    times,
    too_many_calls,
)
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle


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
        *memory_budgets(held, most_at_once),
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
