"""Lab 18: how a mistake of a training step over stages shows: the gradients and the loss that it leads to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab18.pipeline_step import Steps, some
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab18 import step_mistakes as mistakes
from labkit.oracles.lab18.one_process import (
    Grads,
    Tie,
    Weigh,
    both,
    by_token,
    first_grads,
    first_parts,
    place_of_tied,
    tokens_of,
)
from labkit.spec import CANNOT_TELL, CaseRun, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=1e-4)


def shown(run: CaseRun[Steps], grads: Grads) -> Grads:
    """As much of them as comes back."""
    return [[some(one, run.case) for one in of_rank] for of_rank in grads]


def got_grads(run: CaseRun[Steps]) -> list[list[Tensor | None]]:
    return [one["grads"] for one in run.got["ranks"]]


def same(some_grads: Sequence[Tensor | None], others: Sequence[Tensor]) -> bool:
    """The same numbers; NaN is NaN."""
    pairs = zip(some_grads, others, strict=True)
    return all(
        a is not None and a.shape == b.shape and torch.allclose(a, b, CLOSE.rtol, CLOSE.atol, equal_nan=True)
        for a, b in pairs
    )


@once
def right_ranks(run: CaseRun[Steps]) -> list[bool]:
    """Of each rank, whether all gradients of the first step are right."""
    wanted = shown(run, first_grads(run))
    return [same(got, right) for got, right in zip(got_grads(run), wanted, strict=True)]


def grads_are(weigh: Weigh = by_token, tie: Tie = both) -> Condition:
    """The gradients of the first step are those of this mistake on all ranks. CANNOT_TELL where it changes nothing."""

    def when(run: CaseRun[Steps]) -> Any:
        right, wrong = (shown(run, first_grads(run, *how)) for how in ((by_token, both), (weigh, tie)))
        if all(same(a, b) for a, b in zip(right, wrong, strict=True)):
            return CANNOT_TELL
        return all(same(got, one) for got, one in zip(got_grads(run), wrong, strict=True))

    return when


def grads_of(played: mistakes.Played) -> Condition:
    """As `grads_are`, of a mistake that is no sum of parts."""

    def when(run: CaseRun[Steps]) -> Any:
        wrong = played(run)
        if wrong is None:
            return CANNOT_TELL
        pairs = list(zip(shown(run, first_grads(run)), shown(run, wrong), strict=True))
        if all(same(a, b) for a, b in pairs):
            return CANNOT_TELL
        return all(same(got, one) for got, (_, one) in zip(got_grads(run), pairs, strict=True))

    return when


def loss_is(weigh: Weigh) -> Condition:
    """The gradients are right, and the loss of the first step is that of this mistake."""

    def when(run: CaseRun[Steps]) -> Any:
        if not all(right_ranks(run)):
            return False
        summed, n_tokens = first_parts(run)[0], tokens_of(run)
        right, wrong = (
            sum(factor * loss for factor, loss in zip(one(run.case, n_tokens), summed)) for one in (by_token, weigh)
        )
        if math.isclose(right, wrong, rel_tol=1e-5):
            return CANNOT_TELL
        got = run.got["ranks"][-1]["losses"][0]
        return got is not None and math.isclose(got, wrong, rel_tol=1e-4)

    return when


def goes_wrong_on_its_way_up(run: CaseRun[Steps]) -> Any:
    """All gradients of the last rank are right but perhaps the embedding's, and a layer's of an earlier one is not."""
    fine = []
    for rank, (got, right) in enumerate(zip(got_grads(run), shown(run, first_grads(run)), strict=True)):
        tied = place_of_tied(run, rank) if rank in (0, run.case.n_ranks - 1) else -1
        pairs = [pair for k, pair in enumerate(zip(got, right, strict=True)) if k != tied]
        fine.append(all(same([mine], [wanted]) for mine, wanted in pairs))
    if all(fine):
        return CANNOT_TELL if all(right_ranks(run)) else False
    return fine[-1]


def no_gradient_at_all(run: CaseRun[Steps]) -> bool:
    return any(one is None for of_rank in got_grads(run) for one in of_rank)


def no_number_without_tokens(run: CaseRun[Steps]) -> bool:
    """The loss is NaN, and of some micro-batch no token counts."""
    losses = run.got["ranks"][-1]["losses"]
    return run.case.all_ignored >= 0 and losses[0] is not None and math.isnan(losses[0])
