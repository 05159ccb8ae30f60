"""Lab 17: what is true of a sequence-parallel block: one process's values, five passes, a part of what is saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import compare
from labkit.exercises.lab17.layers import BACKWARD, FORWARD, shape_of, some
from labkit.exercises.lab17.sequence_parallel import NAMES, REPLICATED, Block, draw_micro_batch, draw_weights
from labkit.oracles.hints import Condition
from labkit.oracles.lab17.ranks import (
    CLOSE,
    ROOM_BYTES,
    Found,
    all_reduce_bytes,
    calls_each_way,
    calls_of,
    least_all_reduce_bytes,
    places_of,
    played,
    sent_each_way,
    shapes_are,
)
from labkit.oracles.lab17.sequence_mistakes import Slip, factors, part_of, slipped_result
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

PARTS_HELD = 5
"""Tensors of the size of a rank's part of x that may be there after the forward pass, x and y among them."""
NORMS = ("norm_weight", "norm_bias")
RIGHT = ("y", "x", "shapes", "grads")


def expect(run: CaseRun[Block]) -> dict[str, Any]:
    """What one process has, by autograd, that drops the elements that the answer dropped; cut for each rank."""
    case, n = run.case, run.case.n_ranks
    weights = {
        name: one.requires_grad_() for name, one in zip(NAMES, draw_weights(case, run.tree["seed"]), strict=True)
    }
    found: list[Found] = [{"y": [], "kept": one["kept"], "x": []} for one in run.got["ranks"]]
    for micro in range(case.n_micro):
        x, grad = draw_micro_batch(case, run.tree["seed"], micro)
        x.requires_grad_()
        y = x + dropped(run, micro) * mlp(case, x, weights)
        y.backward(grad)
        for one, mine, x_grad in zip(found, y.detach().chunk(n), x.grad.chunk(n), strict=True):
            one["y"].append(some(mine))
            one["x"].append(some(x_grad))
    for rank, one in enumerate(found):
        mine = {name: part_of(name, weight.grad, rank, n) for name, weight in weights.items()}
        one["shapes"] = {name: shape_of(grad) for name, grad in mine.items()}
        one["grads"] = {name: some(grad) for name, grad in mine.items()}
        one["drawn"] = run.got["ranks"][rank]["drawn"]
    return {"ranks": found}


def normed(case: Block, x: Tensor, weights: dict[str, Tensor]) -> Tensor:
    return F.layer_norm(x, (case.hidden,), weights["norm_weight"], weights["norm_bias"])


def mlp(case: Block, x: Tensor, weights: dict[str, Tensor]) -> Tensor:
    hidden = F.gelu(F.linear(normed(case, x, weights), weights["w_in"], weights["b_in"]))
    return F.linear(hidden, weights["w_out"], weights["b_out"])


def dropped(run: CaseRun[Block], micro: int) -> Tensor | float:
    """By what dropout multiplied on all ranks."""
    return torch.cat(factors(run, micro)) if run.case.p else 1.0


def tolerance(run: CaseRun[Block]) -> Tolerance:
    """Sums over as many tokens as there are: their roundings grow with them."""
    tokens = run.case.sequence * run.case.batch
    return Tolerance(atol=CLOSE.atol * max(1, tokens / 30), rtol=CLOSE.rtol)


def generators_differ_where_they_should(run: Observation) -> str | None:
    """A property: what is replicated is drawn alike on all ranks, what is sharded differs on all; seeds matter."""
    ranks = [one["drawn"] for one in run.got["ranks"]]
    for rank, (first, again, other) in enumerate(ranks):
        if not all(torch.equal(a, b) for a, b in zip(first, again, strict=True)):
            return f"rank {rank}: called twice with seed 7, dropout_generators draws different numbers"
        if any(torch.equal(a, b) for a, b in zip(first, other, strict=True)):
            return f"rank {rank}: with seed 8 dropout_generators draws the same numbers as with seed 7"
        if not torch.equal(first[0], ranks[0][0][0]):
            return f"the first generator draws other numbers on rank {rank} than on rank 0"
        if torch.equal(first[1], ranks[0][0][0]):
            return f"on rank {rank} the second generator draws the same numbers as the first one"
    for a, b in combinations(range(len(ranks)), 2):
        if torch.equal(ranks[a][0][1], ranks[b][0][1]):
            return f"the second generator draws the same numbers on ranks {a} and {b}"
    return None


generators_differ_where_they_should.hint = (
    "The first generator is for tensors of which every rank has a copy: its seed is the same on all ranks. The second "
    "is for tensors of which every rank has another part: its seed depends on the rank, and differs from that of the "
    "first one on every rank, also on rank 0."
)


def masks_are_dropout(run: Observation) -> str | None:
    """A property: about p of the elements are dropped, others on each rank, and others in each micro-batch."""
    case = run.case
    if not case.p:
        return None
    masks = [one["kept"] for one in run.got["ranks"]]
    for rank, mine in enumerate(masks):
        for micro, kept in enumerate(mine):
            share, spread = 1 - kept.double().mean().item(), math.sqrt(case.p * (1 - case.p) / kept.numel())
            if abs(share - case.p) > 6 * spread:
                return f"rank {rank} dropped {share:.0%} of the elements where p is {case.p:g}"
            if micro and torch.equal(kept, mine[0]):
                return f"rank {rank} dropped the same elements in micro-batches 0 and {micro}"
    for a, b in combinations(range(case.n_ranks), 2):
        if torch.equal(masks[a][0], masks[b][0]):
            return f"ranks {a} and {b} dropped the same elements of their parts"
    return None


def dropped_alike(run: CaseRun[Block]) -> Any:
    if not run.case.p or run.case.n_ranks == 1:
        return CANNOT_TELL
    masks = [one["kept"][0] for one in run.got["ranks"]]
    return is_mixed(masks[0]) and all(torch.equal(masks[0], other) for other in masks[1:])


def dropped_again(run: CaseRun[Block]) -> Any:
    if not run.case.p or run.case.n_micro == 1:
        return CANNOT_TELL
    kept = [one["kept"] for one in run.got["ranks"]]
    return all(is_mixed(first) and torch.equal(first, second) for first, second, *_ in kept)


def is_mixed(mask: Tensor) -> bool:
    """Some elements were dropped and some kept: a block that never returns x drops nothing that can be seen."""
    return bool(mask.any()) and not bool(mask.all())


def parts_of(whole: Tensor, n_ranks: int) -> list[Tensor]:
    """By rank as much of its tokens as comes back."""
    return [some(one) for one in whole.detach().chunk(n_ranks)]


def outputs_are(make: Callable[[Block, Tensor, dict[str, Tensor]], Tensor], with_dropout: bool) -> Condition:
    """A hint's condition: the outputs are make(case, whole x, weights), where there is dropout or where there is none.
    CANNOT_TELL elsewhere."""

    def when(run: CaseRun[Block]) -> Any:
        case = run.case
        if bool(case.p) != with_dropout:
            return CANNOT_TELL
        weights = dict(zip(NAMES, draw_weights(case, run.tree["seed"]), strict=True))
        for micro in range(case.n_micro):
            made = make(case, draw_micro_batch(case, run.tree["seed"], micro)[0], weights)
            pairs = zip(parts_of(made, case.n_ranks), run.got["ranks"], strict=True)
            if any(compare(wrong, one["y"][micro], tolerance(run)) for wrong, one in pairs):
                return False
        return True

    return when


def where_dropped(left: Callable[[Tensor, Tensor], Tensor]) -> Condition:
    """A hint's condition: of about as many elements as dropout drops, this is left: (part of x, b_out) -> y.
    CANNOT_TELL without dropout."""

    def when(run: CaseRun[Block]) -> Any:
        case = run.case
        if not case.p:
            return CANNOT_TELL
        b_out = draw_weights(case, run.tree["seed"])[NAMES.index("b_out")]
        for micro in range(case.n_micro):
            x = draw_micro_batch(case, run.tree["seed"], micro)[0]
            for part, one in zip(parts_of(left(x, b_out), case.n_ranks), run.got["ranks"], strict=True):
                if ((one["y"][micro] - part).abs() < CLOSE.atol).double().mean() < case.p / 2:
                    return False
        return True

    return when


def slipped(slip: Slip, only: Sequence[str] = RIGHT) -> Any:
    """A hint's condition, of all that came back or of this much."""
    return played(lambda run, rank, right: slipped_result(run, slip)[rank], only=only, close=tolerance)


def whole_weights(run: CaseRun[Block], rank: int) -> dict[str, tuple[int, ...]]:
    return {"w_in": (run.case.ffn, run.case.hidden)}


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


def keeps_what_was_gathered(run: CaseRun[Block]) -> Any:
    """One collective fewer than there can be in the backward pass, the sums of parameters in one call."""
    if run.case.n_ranks == 1:
        return CANNOT_TELL
    return calls_of(run, FORWARD) == 2 and calls_of(run, BACKWARD) == 3


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
