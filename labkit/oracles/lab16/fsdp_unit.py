"""Lab 16: what is true of a sharded layer: autograd's own gradients, three passes, a shard when it is not in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import came_by, compare, inputs_untouched, sent_around
from labkit.exercises.lab16.fsdp_unit import MOMENTS, N_ROWS, Layers, draw_rows, draw_weight, rows_of, some
from labkit.oracles.hints import once
from labkit.oracles.lab16.sharded_steps import N_EQUAL_PARTS, ROOM_BYTES, WRONG_LENGTHS
from labkit.oracles.lab16.unit_roundings import bound
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

ALIKE = Tolerance(atol=2e-5, rtol=2e-4)
"""Whether an answer is as a mistake makes it, which is further off than any rounding."""


@once
def by_rank(run: CaseRun[Layers]) -> list[tuple[Tensor, Tensor, list[Tensor]]]:
    """Of each rank's rows, by autograd with whole weights: the output, the input's gradient, the weights' gradients."""
    case, found = run.case, []
    weights = [draw_weight(case, run.tree["seed"], k).requires_grad_() for k in range(len(case.shapes))]
    for one in run.tree["ranks"]:
        x, grad = draw_rows(case, one["seed"])
        x.requires_grad_()
        y = x
        for weight in weights:
            y = F.linear(y, weight)
        grads = torch.autograd.grad(y, [x, *weights], grad)
        found.append((y.detach(), grads[0], list(grads[1:])))
    return found


def shards_with(
    run: CaseRun[Layers], reduced: Callable[[list[Tensor], int], Tensor], laid_out: Callable[[Tensor], Tensor]
) -> list[list[Tensor | None]]:
    """Each rank's gradients of its shards. reduced: (a layer's gradient of every rank, rank) -> what is cut for it."""
    case, found = run.case, []
    for rank in range(case.n_ranks):
        mine: list[Tensor | None] = []
        for layer in range(len(case.shapes)):
            grads = [one[2][layer] for one in by_rank(run)]
            rows = rows_of(laid_out(reduced(grads, rank)), case.n_ranks)
            mine.append(None if layer in case.frozen else some(rows[rank], case))
        found.append(mine)
    return found


def mean(grads: list[Tensor], rank: int) -> Tensor:
    return torch.stack(grads).mean(0)


def as_they_are(grad: Tensor) -> Tensor:
    return grad


def expect(run: CaseRun[Layers]) -> dict[str, Any]:
    """Autograd's gradients, those of the weights averaged over the ranks and cut."""
    shards = shards_with(run, mean, as_they_are)
    return {"ranks": [{"y": y, "x": x, "shards": mine} for (y, x, _), mine in zip(by_rank(run), shards, strict=True)]}


def shards_are(
    reduced: Callable[[list[Tensor], int], Tensor], laid_out: Callable[[Tensor], Tensor] = as_they_are
) -> Callable[[CaseRun[Layers]], Any]:
    """A hint's condition: the shards' gradients are what a mistake makes of them. CANNOT_TELL where it changes none."""

    def when(run: CaseRun[Layers]) -> Any:
        wrong = shards_with(run, reduced, laid_out)
        if compare([one["shards"] for one in run.expected["ranks"]], wrong, ALIKE) is None:
            return CANNOT_TELL
        return compare(wrong, [one["shards"] for one in run.got["ranks"]], ALIKE) is None

    return when


def part_is_right(name: str, run: CaseRun[Layers]) -> bool:
    pairs = zip(run.expected["ranks"], run.got["ranks"], strict=True)
    return all(compare(a[name], b[name], bound(run)) is None for a, b in pairs)


def shards_are_nearly_right(run: CaseRun[Layers]) -> bool:
    """Outputs and gradients of x are right, and those of the shards as close as if they had had 16 bits on the way."""
    if not (part_is_right("y", run) and part_is_right("x", run)) or part_is_right("shards", run):
        return False
    pairs = zip(run.expected["ranks"], run.got["ranks"], strict=True)
    return all(compare(a["shards"], b["shards"], Tolerance(atol=2**-7, rtol=2**-7)) is None for a, b in pairs)


def x_is_averaged(run: CaseRun[Layers]) -> Any:
    if run.case.n_ranks == 1:
        return CANNOT_TELL
    wrong = torch.stack([one["x"] for one in run.expected["ranks"]]).mean(0)
    by_n = [one["x"] / run.case.n_ranks ** len(run.case.shapes) for one in run.expected["ranks"]]
    got = [one["x"] for one in run.got["ranks"]]
    return compare([wrong] * len(got), got, ALIKE) is None or compare(by_n, got, ALIKE) is None


def no_gradient(name: str) -> Callable[[CaseRun[Layers]], bool]:
    def when(run: CaseRun[Layers]) -> bool:
        found = [one[name] for one in run.got["ranks"]]
        return all(one is None or (isinstance(one, list) and set(map(type, one)) == {type(None)}) for one in found)

    return when


def frozen_has_a_gradient(run: CaseRun[Layers]) -> Any:
    if not run.case.frozen:
        return CANNOT_TELL
    return any(one["shards"][layer] is not None for one in run.got["ranks"] for layer in run.case.frozen)


def most_bytes(run: CaseRun[Layers]) -> int:
    """Two all-gathers for each layer, and a reduce-scatter for each that is trained."""
    case = run.case
    elements = sum((3 - (k in case.frozen)) * size for k, size in enumerate(case.shard_elements))
    return max((case.n_ranks - 1) * 4 * elements, 1)


def most_calls(run: CaseRun[Layers]) -> int:
    return 2 * len(run.case.shapes) + run.case.n_trained


def held_forward(run: CaseRun[Layers]) -> int:
    """The shards, and a few rows of each width."""
    return 4 * (sum(run.case.shard_elements) + 4 * N_ROWS * sum(run.case.widths)) + ROOM_BYTES


def held_backward(run: CaseRun[Layers]) -> int:
    """The same with the shards' gradients."""
    return held_forward(run) + 4 * sum(run.case.shard_elements)


def most_at_once(run: CaseRun[Layers]) -> int:
    """Beside what is held: of one layer the weight, its gradient, and copies of them that are filled up with zeros."""
    return held_backward(run) + 4 * 6 * max(a * b for a, b in run.case.shapes) + ROOM_BYTES


def sent_by_moments(run: CaseRun[Layers]) -> list[tuple[int, int]]:
    """At least, by the end of each pass and afterwards: every weight goes to all ranks in both passes, and the gradient
    of one that is trained comes from all of them."""
    sizes = [a * b for a, b in run.case.shapes]
    trained = sum(size for k, size in enumerate(sizes) if k not in run.case.frozen)
    forward, backward = (4 * (run.case.n_ranks - 1) * n for n in (sum(sizes), sum(sizes) + trained))
    return [(forward, backward), (forward + backward, 0)]


def in_words(run: Observation) -> str:
    case = run.case
    layers = ", ".join(f"{width} -> {out}" for out, width in case.shapes)
    frozen = f"; the weight of layer {case.frozen[0]} is frozen" if case.frozen else ""
    return f"layers {layers} on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}{frozen}"


FSDP_UNIT = Oracle(
    id="16-fsdp-unit",
    call=in_words,
    places={"x": "gradient of x", "y": "output"} | {f"shards.{k}": f"gradient of layer {k}'s shard" for k in range(8)},
    expect=expect,
    tolerance=bound,
    judge=(
        inputs_untouched,
        came_by(lambda run: [(moment, None) for moment in MOMENTS]),
        sent_around(
            sent_by_moments,
            "Too little was sent: a weight was not gathered in the backward pass, so somebody has kept it since the "
            "forward pass. Keep x and the shard for the backward pass, and gather again, in float32.",
        ),
    ),
    axis="numbers of ranks that divide nothing, several layers, and frozen weights",
    errors={
        WRONG_LENGTHS: N_EQUAL_PARTS.format(what="the gradient"),
        "incorrect number of gradients": "backward returns one value for each argument of forward after ctx, in their "
        "order: the gradients of x and of the shard, and None for comm, n_out and n_in.",
        "invalid for input of size": "What the all-gather brings is longer than the weight where n does not divide it: "
        "leave the zeros at its end out before you give it the shape.",
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. An all-gather in each of the two passes and one reduce-scatter are three passes; an "
            "all-reduce alone is two. A frozen weight needs no reduce-scatter (ctx.needs_input_grad).",
        ),
        Budget(
            "collectives",
            most_calls,
            "Too many calls: an all-gather in the forward pass, another in the backward pass, and a reduce-scatter if "
            "the weight is trained (ctx.needs_input_grad).",
        ),
        Budget(
            "held_bytes",
            held_forward,
            "After the forward pass whole weights are still there. Keep x and the shard for the backward pass, and "
            "gather again: the gathered weight, or a view of it, must not be saved anywhere.",
            at=MOMENTS[0],
        ),
        Budget(
            "held_bytes",
            held_backward,
            "After the backward pass a whole weight or a whole gradient is still there. What backward returns for the "
            "shard has to be a tensor of its own, no view of the whole gradient.",
            at=MOMENTS[1],
        ),
        Budget("peak_bytes", most_at_once, "Several whole weights are there at once."),
    ),
    diagnose=(
        Hint(no_gradient("x"), "The input has no gradient: backward returns one for each argument of forward."),
        Hint(no_gradient("shards"), "The shards have no gradient: backward returns one for each argument of forward."),
        Hint(
            frozen_has_a_gradient,
            "A frozen weight got a gradient: ctx.needs_input_grad says which arguments need one.",
        ),
        Hint(
            shards_are(lambda grads, rank: torch.stack(grads).sum(0)),
            "The gradients of the shards are sums over the ranks. Data parallel training uses their mean.",
        ),
        Hint(
            shards_are(lambda grads, rank: torch.stack(grads).mean(0) / len(grads)),
            "The gradients of the shards were divided by the number of ranks twice.",
        ),
        Hint(
            shards_are(lambda grads, rank: grads[rank]),
            "Each shard has the gradient of its own rank's rows alone. The reduce-scatter averages over all ranks.",
        ),
        Hint(
            shards_are(mean, lambda grad: grad.t()),
            "The gradient is laid out the other way round: it has the weight's shape, (out, in), before it is cut.",
        ),
        Hint(
            x_is_averaged,
            "The gradient of x was averaged over the ranks. Every rank has rows of its own: only the weight's gradient "
            "is reduced.",
        ),
        Hint(
            shards_are_nearly_right,
            "The gradients of the shards are nearly right, and further off than float32 sums in another order can be. "
            "Were they rounded to 16 bits for the network? Reduce them in float32.",
        ),
        Hint(
            lambda run: not part_is_right("y", run),
            "The output is wrong already: it is x times the transposed weight, whose parts stand in the order of the "
            "ranks.",
        ),
    ),
)
