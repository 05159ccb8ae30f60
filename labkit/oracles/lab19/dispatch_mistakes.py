"""Lab 19: what comes of tokens that are sent to experts, or put back, in a wrong way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab19.moe_dispatch import Mixture
from labkit.oracles.hints import once
from labkit.oracles.lab19.dispatch_values import CLOSE
from labkit.spec import CANNOT_TELL, CaseRun


def outs_are(made: Callable[[CaseRun[Mixture], int], Tensor]) -> Callable[[CaseRun[Mixture]], Any]:
    """A hint's condition: each rank's output is what a mistake makes of it; CANNOT_TELL where it changes nothing."""

    def when(run: CaseRun[Mixture]) -> Any:
        wrong = [made(run, rank).float() for rank in range(run.case.n_ranks)]
        if compare([one["out"] for one in run.expected["ranks"]], wrong, CLOSE) is None:
            return CANNOT_TELL
        return compare(wrong, [one["out"] for one in run.got["ranks"]], CLOSE) is None

    return when


@once
def every_expert(run: CaseRun[Mixture]) -> Tensor:
    return torch.cat([one["matrices"].double() for one in run.tree["ranks"]])


@once
def chosen_outputs(run: CaseRun[Mixture], rank: int) -> Tensor:
    """What a rank's choices come to without their weights, (tokens, k, width)."""
    mine = run.tree["ranks"][rank]
    each = torch.tanh(torch.einsum("tw,ewv->tev", mine["x"].double(), every_expert(run)))
    return each.gather(1, mine["chosen"][..., None].expand(-1, -1, run.case.width))


def weights_of(run: CaseRun[Mixture], rank: int) -> Tensor:
    return run.tree["ranks"][rank]["weights"].double()[..., None]


def order_of(run: CaseRun[Mixture], rank: int) -> Tensor:
    """A rank's choices, sorted by expert."""
    return run.tree["ranks"][rank]["chosen"].flatten().argsort(stable=True)


def through(run: CaseRun[Mixture], rows: Tensor, experts: Tensor) -> Tensor:
    """What comes of each row by its expert, numbered over all ranks."""
    return torch.tanh((rows[:, None] @ every_expert(run)[experts])[:, 0])


def weighted_sums(run: CaseRun[Mixture], rank: int, results: Tensor) -> Tensor:
    """A token's results, (tokens x k, width) in the order of its choices, weighted and added."""
    return (results.view(-1, run.case.k, run.case.width) * weights_of(run, rank)).sum(1)


def tokens_in_turn(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Choice i taken for one of token i modulo the number of tokens."""
    mine = run.tree["ranks"][rank]
    chosen = mine["chosen"].flatten()
    return weighted_sums(run, rank, through(run, mine["x"].double().repeat(run.case.k, 1), chosen))


@once
def sorted_by_expert_alone(run: CaseRun[Mixture]) -> list[Tensor]:
    """What comes to a rank taken for sorted by expert, in place of by sender and then by expert."""
    ranks, n_local = run.tree["ranks"], run.case.n_local
    experts = [one["chosen"].flatten()[order_of(run, rank)] for rank, one in enumerate(ranks)]
    taken_for = [one.clone() for one in experts]
    for owner in range(run.case.n_ranks):
        here = [one // n_local == owner for one in experts]
        came = torch.cat([one[some] for one, some in zip(experts, here, strict=True)])
        parts = came.sort().values.split([int(some.sum()) for some in here])
        for one, some, part in zip(taken_for, here, parts, strict=True):
            one[some] = part
    outs = []
    for rank, one in enumerate(ranks):
        order = order_of(run, rank)
        back = through(run, one["x"].double()[order // run.case.k], taken_for[rank])
        outs.append(weighted_sums(run, rank, torch.empty_like(back).index_copy_(0, order, back)))
    return outs


def weights_in_another_order(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Results in the order of the experts, weights in that of the choices."""
    order, weights = order_of(run, rank), weights_of(run, rank).flatten(0, 1)
    back = chosen_outputs(run, rank).flatten(0, 1)[order] * weights
    return torch.zeros_like(chosen_outputs(run, rank)[:, 0]).index_add_(0, order // run.case.k, back)


def weights_before(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Rows multiplied by their weights on the way to the experts."""
    mine = run.tree["ranks"][rank]
    rows = (mine["x"].double()[:, None] * weights_of(run, rank)).flatten(0, 1)
    return through(run, rows, mine["chosen"].flatten()).view(-1, run.case.k, run.case.width).sum(1)


def other_weights(made: Callable[[Tensor], Tensor]) -> Callable[[CaseRun[Mixture], int], Tensor]:
    return lambda run, rank: (chosen_outputs(run, rank) * made(weights_of(run, rank))).sum(1)


def order_not_restored(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Rows as they came back, in the order of experts, taken for those of the tokens."""
    order = order_of(run, rank)
    return weighted_sums(run, rank, chosen_outputs(run, rank).flatten(0, 1)[order])


def ordered_twice(run: CaseRun[Mixture], rank: int) -> Tensor:
    """The order applied once more in place of being undone."""
    order = order_of(run, rank)
    return weighted_sums(run, rank, chosen_outputs(run, rank).flatten(0, 1)[order][order])


def wrong_rows(run: CaseRun[Mixture]) -> Any:
    """Other numbers of rows came to the experts, and not more altogether."""
    got, right = ([one["rows"] for one in some["ranks"]] for some in (run.got, run.expected))
    if got == right:
        return CANNOT_TELL if run.case.n_local == 1 or run.case.n_ranks == 1 else False
    return sum(map(sum, got)) == sum(map(sum, right))


def swapped_rows(run: CaseRun[Mixture]) -> Any:
    """Each expert has as many rows as it should, and the outputs are wrong: these are rows of other experts."""
    got, right = ([one["rows"] for one in some["ranks"]] for some in (run.got, run.expected))
    if got != right:
        return False
    if run.case.n_local == 1 or run.case.n_ranks == 1:
        return CANNOT_TELL
    return compare([one["out"] for one in run.expected["ranks"]], [one["out"] for one in run.got["ranks"]], CLOSE)


def whole_batches(run: CaseRun[Mixture]) -> Any:
    """Experts were given rows that did not choose them."""
    got, right = (sum(sum(one["rows"]) for one in some["ranks"]) for some in (run.got, run.expected))
    return got > right


def is_missing(name: str) -> Callable[[CaseRun[Mixture]], Any]:
    """A hint's condition: outputs are right, and a gradient is not there."""

    def when(run: CaseRun[Mixture]) -> Any:
        pairs = list(zip(run.expected["ranks"], run.got["ranks"], strict=True))
        if any(compare(a["out"], b["out"], CLOSE) for a, b in pairs):
            return False
        return all(b[name] is None or not bool(b[name].any()) for _, b in pairs)

    return when


def matrices_scaled(run: CaseRun[Mixture]) -> Any:
    """The experts' gradients are a multiple of the right ones."""
    factors = []
    for a, b in zip(run.expected["ranks"], run.got["ranks"], strict=True):
        if compare(a["out"], b["out"], CLOSE):
            return False
        if bool(a["d_matrices"].any()):
            factors.append(float((b["d_matrices"] * a["d_matrices"]).sum() / a["d_matrices"].square().sum()))
    if run.case.n_ranks == 1:
        return CANNOT_TELL
    return max(factors) - min(factors) < 1e-3 and abs(factors[0] - 1) > 1e-2 and abs(factors[0]) > 1e-2
