"""Lab 17: what one process has of a whole block, with the elements dropped that the answer dropped, and what holds of
generators and masks."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab17.layers import shape_of, some
from labkit.exercises.lab17.sequence_parallel import NAMES, Block, draw_micro_batch, draw_weights
from labkit.oracles.lab17.mlp_values import part_of
from labkit.oracles.lab17.ranks import CLOSE, Found
from labkit.spec import CaseRun, Observation, Tolerance


def factors(run: CaseRun[Block], micro: int, unscaled: bool = False) -> list[Tensor | float]:
    """By rank, by what dropout multiplied, from the elements that the answer kept."""
    case = run.case
    if not case.p:
        return [1.0] * case.n_ranks
    return [one["kept"][micro] / (1 if unscaled else 1 - case.p) for one in run.got["ranks"]]


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
