"""Lab 17: the oracle of a sequence-parallel block: one process's values, five passes, a part of what is saved.

What one process has stands in `sequence_values`, and what mistakes make in `sequence_mistakes`.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labkit.exercises.lab17.layers import FORWARD
from labkit.exercises.lab17.sequence_parallel import NAMES, REPLICATED, Block
from labkit.oracles.lab17.ranks import (
    ROOM_BYTES,
    all_reduce_bytes,
    calls_each_way,
    least_all_reduce_bytes,
    places_of,
    sent_each_way,
    shapes_are,
)
from labkit.oracles.lab17.sequence_mistakes import (
    Slip,
    dropped_again,
    dropped_alike,
    keeps_what_was_gathered,
    outputs_are,
    slipped,
    where_dropped,
    whole_weights,
)
from labkit.oracles.lab17.sequence_values import (
    expect,
    generators_differ_where_they_should,
    masks_are_dropout,
    mlp,
    normed,
    tolerance,
)
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

PARTS_HELD = 5
"""Tensors of the size of a rank's part of x that may be there after the forward pass, x and y among them."""
NORMS = ("norm_weight", "norm_bias")


def sums(case: Block) -> tuple[int, int]:
    """The fewest and the most calls of a backward pass: three of the size of x, and one to three small ones."""
    return 4, 6


def most_bytes(run: CaseRun[Block]) -> int:
    case = run.case
    passes = 5 * 4 * (case.n_ranks - 1) * case.part_elements
    return max(case.n_micro * (passes + 3 * all_reduce_bytes(case.hidden, case.n_ranks)), 1)


def least_pass(case: Block) -> int:
    """What all ranks together send at least in an all-gather or a reduce-scatter of the size of x."""
    return 4 * case.n_ranks * (case.n_ranks - 1) * case.part_elements


def least_backward(case: Block) -> int:
    """Three of these, and the sums of three parameters' gradients."""
    return 3 * least_pass(case) + least_all_reduce_bytes(3 * case.hidden, case.n_ranks)


def most_held(run: CaseRun[Block]) -> int:
    """Weights, a rank's columns of the hidden activations before and after GELU, and a few parts of the sequence."""
    case = run.case
    columns = -(-case.ffn // case.n_ranks)
    weights = columns * (2 * case.hidden + 1) + 3 * case.hidden
    hidden = 2 * case.sequence * case.batch * columns
    return 4 * (2 * weights + hidden + PARTS_HELD * case.part_elements) + ROOM_BYTES


def most_at_once(run: CaseRun[Block]) -> int:
    """Whole weights and a copy, or a few tensors of the whole sequence, which come and go."""
    case = run.case
    weights = 4 * case.ffn * case.hidden
    return most_held(run) + 4 * (weights + 8 * case.n_ranks * case.part_elements) + ROOM_BYTES


def in_words(run: Observation) -> str:
    case = run.case
    words = f"x of shape {(case.sequence, case.batch, case.hidden)}, ffn={case.ffn}"
    words += f" on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}"
    words += f", dropout {case.p:g}" * bool(case.p)
    return words + f", {case.n_micro} micro-batches" * (case.n_micro > 1)


GATHERS_ONCE = (
    "Too little is sent. The backward pass gathers the input a second time; if it does not, a tensor of the whole "
    "sequence is still there from the forward pass. Keep the rank's part and gather it again."
)
SEQUENCE_PARALLEL = Oracle(
    id="17-sequence-parallel",
    call=in_words,
    places=places_of(NAMES),
    expect=expect,
    tolerance=tolerance,
    judge=(
        generators_differ_where_they_should,
        masks_are_dropout,
        calls_each_way(lambda case: 2, sums),
        sent_each_way(lambda case: 2 * least_pass(case), least_backward, GATHERS_ONCE),
    ),
    axis="numbers of ranks, columns that do not divide, several micro-batches, and dropout",
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. The forward pass is an all-gather and a reduce-scatter, the two halves of the all-reduce. "
            "The backward pass has the two again and a second all-gather of the input.",
        ),
        Budget(
            "held_bytes",
            most_held,
            "After the forward pass a tensor of the whole sequence is still there, or more than five tensors of the "
            "size of x. Keep the rank's part of the norm's output, and gather it again in the backward pass.",
            at=FORWARD,
        ),
        Budget("peak_bytes", most_at_once, "At some moment a rank holds many tensors of the whole sequence."),
    ),
    unusable={
        "'SequenceParallelMLP' object has no attribute": "Keep the parameters as nn.Parameter, under the names that "
        "__init__ has for them.",
    },
    diagnose=(
        Hint(shapes_are(whole_weights), "Every rank keeps the whole weights. Keep its rows of w_in, as in the MLP."),
        Hint(
            slipped(Slip(own=REPLICATED)),
            "The gradients of norm_weight, norm_bias and b_out are each rank's own. Every rank has the whole of these "
            "parameters, and uses them for its own tokens: their gradients are terms of a sum, and without this sum "
            "the copies drift apart.",
        ),
        Hint(
            slipped(Slip(own=NORMS)),
            "The gradients of norm_weight and norm_bias are each rank's own. Every rank applies the norm to "
            "different tokens: sum these gradients over the ranks.",
        ),
        Hint(
            slipped(Slip(own=("b_out",))),
            "The gradient of b_out is each rank's own. b_out is added to a rank's own tokens, as the norm is applied "
            "to them: sum its gradient over the ranks.",
        ),
        Hint(
            slipped(Slip(mean=REPLICATED)),
            "The gradients of the replicated parameters are means over the ranks. The ranks have different tokens of "
            "one batch, so the gradients are parts of a sum. (This is the mistake of the lab's beginning.)",
        ),
        Hint(
            slipped(Slip(mean=NORMS)),
            "The gradients of norm_weight and norm_bias are means over the ranks. The ranks have different tokens of "
            "one batch, so the gradients are parts of a sum. (This is the mistake of the lab's beginning.)",
        ),
        Hint(
            slipped(Slip(again=REPLICATED)),
            "With a second micro-batch the gradients of the replicated parameters are too large: what the first one "
            "left in .grad was summed over the ranks a second time. Sum each gradient before it is added to .grad.",
        ),
        Hint(
            slipped(Slip(own_x=True)),
            "In the backward pass, each rank took its rows of its own gradient. All ranks used the gathered tokens, "
            "each for its columns: their gradients are summed and cut, by a reduce-scatter.",
        ),
        Hint(
            slipped(Slip(own_tokens=True)),
            "In the backward pass, a rank used the gradient of its own tokens only. Its columns worked on all tokens: "
            "the backward pass of a reduce-scatter is an all-gather.",
        ),
        Hint(
            slipped(Slip(own_y=True)),
            "Each rank took its rows of its own term of the sum: a reduce-scatter adds up while it cuts.",
        ),
        Hint(
            slipped(Slip(n_biases=0), only=("y",)),
            "b_out was added before the reduce-scatter, which counted it n times. Add it afterwards.",
        ),
        Hint(
            outputs_are(lambda case, x, weights: x + mlp(case, x, weights), with_dropout=True), "Nothing was dropped."
        ),
        Hint(
            outputs_are(lambda case, x, weights: x, with_dropout=False),
            "Where p is 0, everything was dropped. An element is dropped with probability p: a random number of [0, 1) "
            "is below p so often, and what is kept has one of p or more.",
        ),
        Hint(
            outputs_are(mlp, with_dropout=False),
            "x is missing in the output: the block returns x + dropout(...).",
        ),
        *(
            Hint(
                outputs_are(
                    lambda case, x, weights, norm=norm: norm(case, x, weights) + mlp(case, x, weights),
                    with_dropout=False,
                ),
                "The norm's output was added in the place of x. The block returns x + dropout(...), with x as it came "
                "in.",
            )
            for norm in (normed, lambda case, x, weights: F.layer_norm(x, (case.hidden,)))
        ),
        Hint(
            where_dropped(lambda x, b_out: torch.zeros_like(x)),
            "Dropout went over x as well. It drops elements of the MLP's output, and x is added after that.",
        ),
        Hint(
            where_dropped(lambda x, b_out: x + b_out),
            "b_out was added after dropout. It is a part of the MLP's output, which dropout goes over: add it before.",
        ),
        Hint(
            slipped(Slip(unscaled=True)),
            "What dropout keeps is divided by 1 - p, so that the expected value stays the same.",
        ),
        Hint(
            dropped_alike,
            "All ranks dropped the same elements of their parts. They hold different tokens, so each rank needs a mask "
            "of its own. Draw it from the generator for sharded tensors.",
        ),
        Hint(
            dropped_again,
            "Every forward pass dropped the same elements. Make the generator once, in __init__: then each forward "
            "pass draws the numbers that follow the last ones.",
        ),
        Hint(
            keeps_what_was_gathered,
            "The backward pass calls one collective fewer than it should: the gathered input was kept from the forward "
            "pass. Then every layer keeps a tensor of the whole sequence until its backward pass. Keep the rank's part "
            "and gather it again.",
        ),
    ),
)
