"""Lab 17: what ranks get that put the parts of a sequence-parallel block together in a wrong way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import compare
from labkit.exercises.lab17.layers import BACKWARD, FORWARD, shape_of, some
from labkit.exercises.lab17.sequence_parallel import NAMES, REPLICATED, Block, draw_micro_batch, draw_weights
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab17.ranks import CLOSE, Found, calls_of, played
from labkit.oracles.lab17.sequence_values import factors, part_of, tolerance
from labkit.spec import CANNOT_TELL, CaseRun


@dataclass(frozen=True)
class Slip:
    """own: replicated parameters whose gradients no rank sums. mean: that are averaged. again: that are summed together
    with what earlier micro-batches left. own_y, own_x: the sum of the reduce-scatter is missing, forward or
    back. own_tokens: the gradient of the output is not gathered. n_biases: how often b_out is added, 0 for once a rank.
    unscaled: dropout does not divide by 1 - p.
    """

    own: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    own_y: bool = False
    own_x: bool = False
    own_tokens: bool = False
    n_biases: int = 1
    unscaled: bool = False


@once
def slipped_result(run: CaseRun[Block], slip: Slip) -> list[Found]:
    """By rank, what a mistake makes."""
    case, n = run.case, run.case.n_ranks
    whole = dict(zip(NAMES, draw_weights(case, run.tree["seed"]), strict=True))
    weights = [
        {name: part_of(name, one, rank, n).clone().requires_grad_() for name, one in whole.items()} for rank in range(n)
    ]
    sums = [{name: torch.zeros_like(one) for name, one in mine.items()} for mine in weights]
    found: list[Found] = [{"y": [], "kept": one["kept"], "x": []} for one in run.got["ranks"]]
    for micro in range(case.n_micro):
        _micro_batch(run, slip, micro, weights, sums, found)
    for mine, one in zip(sums, found, strict=True):
        one["shapes"] = {name: shape_of(grad) for name, grad in mine.items()}
        one["grads"] = {name: some(grad) for name, grad in mine.items()}
    return found


def _micro_batch(
    run: CaseRun[Block],
    slip: Slip,
    micro: int,
    weights: list[dict[str, Tensor]],
    sums: list[dict[str, Tensor]],
    found: list[Found],
) -> None:
    case, n = run.case, run.case.n_ranks
    x, grad = draw_micro_batch(case, run.tree["seed"], micro)
    xs = [one.clone().requires_grad_() for one in x.chunk(n)]
    normed = [
        F.layer_norm(one, (case.hidden,), mine["norm_weight"], mine["norm_bias"])
        for one, mine in zip(xs, weights, strict=True)
    ]
    gathered = [torch.cat([one.detach() for one in normed]).requires_grad_() for _ in range(n)]
    terms = [
        F.linear(F.gelu(F.linear(one, mine["w_in"], mine["b_in"])), mine["w_out"])
        for one, mine in zip(gathered, weights, strict=True)
    ]
    total = torch.stack([one.detach() for one in terms]).sum(0)
    by, back = factors(run, micro, slip.unscaled), []
    for rank, one in enumerate(found):
        part = (terms[rank].detach() if slip.own_y else total).chunk(n)[rank]
        part = part + (slip.n_biases or n) * weights[rank]["b_out"].detach()
        one["y"].append(some(xs[rank].detach() + by[rank] * part))
        back.append(by[rank] * grad.chunk(n)[rank])
    new: list[dict[str, Tensor]] = []
    for rank in range(n):
        mine = [part if other == rank or not slip.own_tokens else part * 0 for other, part in enumerate(back)]
        names = ("w_in", "b_in", "w_out")
        gathered_grad, *own = torch.autograd.grad(
            terms[rank], [gathered[rank], *(weights[rank][name] for name in names)], torch.cat(mine)
        )
        new.append(dict(zip(names, own, strict=True)) | {"b_out": back[rank].sum((0, 1)), "gathered": gathered_grad})
    summed = torch.stack([one["gathered"] for one in new]).sum(0)
    for rank, one in enumerate(new):
        here = (one.pop("gathered") if slip.own_x else summed).chunk(n)[rank]
        leaves = [xs[rank], weights[rank]["norm_weight"], weights[rank]["norm_bias"]]
        x_grad, one["norm_weight"], one["norm_bias"] = torch.autograd.grad(normed[rank], leaves, here)
        found[rank]["x"].append(some(x_grad + grad.chunk(n)[rank]))
    _add_up(slip, new, sums)


def _add_up(slip: Slip, new: list[dict[str, Tensor]], sums: list[dict[str, Tensor]]) -> None:
    n = len(new)
    for name in NAMES:
        over_ranks: Any = None
        if name in REPLICATED:
            over_ranks = torch.stack([one[name] for one in new]).sum(0)
        before = torch.stack([one[name] for one in sums]).sum(0) if name in slip.again else None
        for rank, mine in enumerate(sums):
            if over_ranks is None or name in slip.own:
                mine[name] = mine[name] + new[rank][name]
            elif name in slip.again:
                mine[name] = before + over_ranks
            else:
                mine[name] = mine[name] + over_ranks / (n if name in slip.mean else 1)


RIGHT = ("y", "x", "shapes", "grads")


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


def keeps_what_was_gathered(run: CaseRun[Block]) -> Any:
    """One collective fewer than there can be in the backward pass, the sums of parameters in one call."""
    if run.case.n_ranks == 1:
        return CANNOT_TELL
    return calls_of(run, FORWARD) == 2 and calls_of(run, BACKWARD) == 3
