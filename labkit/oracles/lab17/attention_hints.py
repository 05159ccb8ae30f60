"""Lab 17: what a student is told whose attention with dealt heads is wrong, or sends more than it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from labkit.exercises.lab17.layers import BACKWARD, FORWARD
from labkit.exercises.lab17.tp_attention import Heads
from labkit.oracles.lab17.attention_costs import most_bytes, passes
from labkit.oracles.lab17.attention_mistakes import (
    Slip,
    averaged,
    dealt_in_turn,
    of_one_rank,
    over_all_ranks,
    over_every_so_many,
    over_the_same_in_turn,
    result,
)
from labkit.oracles.lab17.ranks import calls_of, played, shapes_are, times, too_many_calls, values_are_right
from labkit.spec import CANNOT_TELL, CaseRun, Hint


def slipped(slip: Slip, only: Sequence[str] = ("y", "x", "shapes", "grads")) -> Any:
    """A hint's condition, of all that came back or of this much."""
    return played(lambda run, rank, right: result(run, slip)[rank], only)


def split_head(run: CaseRun[Heads], rank: int) -> dict[str, tuple[int, ...]]:
    case = run.case
    total = case.n_kv_heads * case.head_dim
    mine = len(torch.arange(total).tensor_split(case.n_ranks)[rank])
    return {"w_k": (mine, case.hidden)}


def whole_kv(run: CaseRun[Heads], rank: int) -> dict[str, tuple[int, ...]]:
    return {"w_k": (run.case.n_kv_heads * run.case.head_dim, run.case.hidden)}


def whole_output(run: CaseRun[Heads], rank: int) -> dict[str, tuple[int, ...]]:
    return {"w_o": (run.case.hidden, run.case.n_heads * run.case.head_dim)}


def no_gradient(run: CaseRun[Heads]) -> bool:
    return all(one["grads"]["w_q"] is None for one in run.got["ranks"])


def kv_over_everybody(run: CaseRun[Heads]) -> Any:
    """Right values, right calls, and too many bytes where heads are replicated."""
    if run.case.n_replicas in (1, run.case.n_ranks):
        return CANNOT_TELL
    return values_are_right(run) and run.measured["bytes_sent"] > most_bytes(run)


SUM_BACK = (
    "The weights' gradients are n times too large: the gradient of the output was all-reduced, too. Every rank has the "
    "whole of it already, so the sum at the end of the layer lets it through as it is."
)

HINTS = (
    Hint(
        shapes_are(whole_output),
        "Every rank keeps the whole w_o. It has its heads' columns of the input of w_o, so it needs only those "
        "columns of w_o: the products are terms of one sum, as in the MLP.",
    ),
    Hint(
        shapes_are(whole_kv),
        "Every rank keeps all key and value heads. It needs only those that its query heads use.",
    ),
    Hint(
        shapes_are(split_head),
        "With fewer key and value heads than ranks, a rank got a part of a head. A score is the product of a whole "
        "query and a whole key, so a head cannot be cut: several ranks hold the same one.",
    ),
    Hint(no_gradient, "The weights have no gradient: keep them as nn.Parameter, and compute without no_grad."),
    Hint(
        slipped(Slip(kv_grads=of_one_rank)),
        "The gradients of w_k and w_v are each rank's own, and with copies of a head they are parts of one sum: "
        "each copy serves other query heads. The copies will drift apart. Sum them over the ranks that hold the "
        "same head.",
    ),
    Hint(
        slipped(Slip(kv_grads=over_all_ranks)),
        "The gradients of w_k and w_v were summed over all ranks, and so over different heads. Sum them over the "
        "ranks that hold the same head: comm.new_group(ranks).",
    ),
    Hint(
        slipped(Slip(kv_grads=averaged)),
        "The gradients of w_k and w_v are means over the copies. Each copy serves other query heads, so their "
        "gradients are parts of one sum: op='sum'.",
    ),
    *(
        Hint(
            slipped(Slip(summed=(summed,))),
            f"The gradient of {summed} was summed over the ranks that hold the same head, and that of {other} was "
            "not: it needs the same sum.",
        )
        for summed, other in (("w_k", "w_v"), ("w_v", "w_k"))
    ),
    Hint(
        slipped(Slip(kv_grads=over_every_so_many)),
        "The gradients of w_k and w_v were summed over ranks that hold different heads. Neighbouring ranks hold "
        "the same one: the group of rank r begins at r - r % copies.",
    ),
    Hint(
        slipped(Slip(kv_again=True)),
        "With a second micro-batch the gradients of w_k and w_v are too large: what the first one left in .grad "
        "was already summed over the copies, and was summed again. Sum each backward pass's gradient before it is "
        "added to .grad.",
    ),
    Hint(
        slipped(Slip(kv=dealt_in_turn, kv_grads=over_the_same_in_turn), only=("y",)),
        "A rank has another key and value head than its query heads use. Query head j uses head j // (n_heads // "
        "n_kv_heads), so neighbouring ranks share one.",
    ),
    Hint(
        slipped(Slip(in_turn=True)),
        "On a rank with several key and value heads, query head j does not use head j // (n_heads // "
        "n_kv_heads): the heads were repeated as a block. repeat_interleave repeats each one in its place.",
    ),
    Hint(
        slipped(Slip(own_sum=True)),
        "Each rank returned its own term of the sum: an all-reduce at the end of the layer is missing.",
    ),
    Hint(
        slipped(Slip(own_x=True)),
        "The gradient of x is each rank's own part. Every rank used the whole x, so its gradient is the sum over "
        "the ranks: the all-reduce of the backward pass is missing where x comes in.",
    ),
    Hint(slipped(Slip(back_summed=True)), SUM_BACK),
    Hint(
        slipped(Slip(is_causal=False)),
        "Tokens attend to tokens that come after them. Attention is causal: is_causal=True.",
    ),
    Hint(
        slipped(Slip(is_scaled=False)),
        "The scores were not divided by the square root of head_dim.",
    ),
    Hint(
        slipped(Slip(scaled_by_hidden=True), only=("y",)),
        "The scores were divided by the square root of x's columns (hidden). A score is the product of two heads: "
        "divide by the square root of head_dim.",
    ),
    *(
        Hint(
            slipped(Slip(layout=layout), only=("y",)),
            "A view has cut columns into heads across tokens. The columns of a token are its heads, one after the "
            "other: split the last dimension (unflatten), then exchange heads and tokens (transpose).",
        )
        for layout in ("viewed", "both")
    ),
    Hint(
        slipped(Slip(layout="not put back"), only=("y",)),
        "The heads were put side by side before heads and tokens were exchanged again: transpose(1, 2), then "
        "flatten(2).",
    ),
    Hint(
        played(lambda run, rank, one: {"x": times(one["x"], 1 / run.case.n_ranks)}),
        "The gradient of x is the mean over the ranks. The ranks' gradients are parts of one sum: op='sum'.",
    ),
    Hint(
        too_many_calls(FORWARD, lambda case: 1),
        "The values are right, but the forward pass communicates more than once. A rank needs nothing from the "
        "others for its own heads: only the output is summed.",
    ),
    Hint(
        lambda run: (
            CANNOT_TELL
            if run.case.n_ranks == 1 or calls_of(run, BACKWARD) <= passes(run.case)[1]
            else values_are_right(run)
            and calls_of(run, BACKWARD) == 3 * run.case.trains_input + 2 * (run.case.n_replicas > 1)
        ),
        "The gradient of x was all-reduced three times, for queries, keys and values each. Let x come in once, and "
        "use the result for all three: then autograd adds up first, and one all-reduce is enough.",
    ),
    Hint(
        too_many_calls(BACKWARD, lambda case: passes(case)[1]),
        "The values are right, but the backward pass communicates more than it must: the gradient of x once, and "
        "those of w_k and w_v only where several ranks hold the same head.",
    ),
    Hint(
        kv_over_everybody,
        "The gradients of w_k and w_v went over all ranks: a group of those that hold the same head is enough.",
    ),
)
