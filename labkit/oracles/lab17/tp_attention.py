"""Lab 17: the oracle of attention whose heads are dealt out: one process's values and gradients, calls, parts."""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab17.layers import shape_of, some
from labkit.exercises.lab17.tp_attention import NAMES, Heads, draw_micro_batches, draw_weights
from labkit.oracles.lab17.attention_costs import held, least_backward, least_forward, most_at_once, most_bytes, passes
from labkit.oracles.lab17.attention_hints import HINTS
from labkit.oracles.lab17.attention_mistakes import attention, rows_of
from labkit.oracles.lab17.ranks import (
    CLOSE,
    SHAPES,
    WHICH_WAY,
    Found,
    calls_each_way,
    memory_budgets,
    places_of,
    same_bits,
    sent_each_way,
)
from labkit.spec import Budget, CaseRun, Observation, Oracle


def expect(run: CaseRun[Heads]) -> dict[str, Any]:
    """What one process has, by autograd, and each rank's parts of the weights' gradients."""
    case = run.case
    weights = tuple(one.requires_grad_() for one in draw_weights(case, run.tree["seed"]))
    found: Found = {"y": [], "x": []}
    for x, grad in draw_micro_batches(case, run.tree["seed"]):
        x.requires_grad_(case.trains_input)
        y = attention(case, x, weights)
        y.backward(grad)
        found["y"].append(y.detach())
        found["x"].append(x.grad)
    grads = {name: one.grad for name, one in zip(NAMES, weights, strict=True)}
    ranks = []
    for rank in range(case.n_ranks):
        mine = {name: rows_of(case, name, grad, rank) for name, grad in grads.items()}
        shapes = {name: shape_of(part) for name, part in mine.items()}
        ranks.append(found | {"shapes": shapes, "grads": {name: some(part) for name, part in mine.items()}})
    return {"ranks": ranks}


def in_words(run: Observation) -> str:
    case = run.case
    words = f"{case.n_heads} query heads, {case.n_kv_heads} key and value heads of {case.head_dim} columns"
    words += f", x of shape {(*case.tokens, case.hidden)} on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}"
    words += f", {case.n_micro} micro-batches" * (case.n_micro > 1)
    return words + ", x needs no gradient" * (not case.trains_input)


TP_ATTENTION = Oracle(
    id="17-tp-attention",
    call=in_words,
    places=places_of(NAMES),
    expect=expect,
    tolerance=CLOSE,
    judge=(same_bits, calls_each_way(lambda case: 1, passes), sent_each_way(least_forward, least_backward)),
    axis="numbers of heads and ranks, replicated key and value heads, and several micro-batches",
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. Over all ranks, only tensors of the shape of x and y are summed. The gradients of w_k and "
            "w_v are summed only among the ranks that hold the same head (comm.new_group).",
        ),
        *memory_budgets(held, most_at_once),
    ),
    unusable={
        "'ParallelAttention' object has no attribute": "Keep the parts as nn.Parameter, under the names w_q, w_k, w_v "
        "and w_o.",
    },
    errors={
        "Number of heads in key and value must divide": "A rank's query heads are no multiple of its key and value "
        "heads. It needs only those rows of w_k and w_v that its own query heads use.",
        "'NoneType' object has no attribute 'all_reduce'": "new_group returns None to a rank that is not in its list. "
        "The group of rank r has the ranks with the same head, and r is one of them: it begins at r - r % copies.",
        SHAPES: WHICH_WAY,
    },
    diagnose=HINTS,
)
