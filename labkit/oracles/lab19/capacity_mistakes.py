"""Lab 19: which experts, places and losses the usual mistakes come to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab19.moe_capacity import Routing
from labkit.oracles.hints import once
from labkit.oracles.lab19.capacity_values import (
    CLOSE,
    capacity_is_right,
    is_whole,
    kept_are_the_first,
    right_capacities,
)
from labkit.spec import CANNOT_TELL, CaseRun


def experts_are(made: Callable[[Tensor, int], Tensor]) -> Callable[[CaseRun[Routing]], Any]:
    """A hint's condition: the choices are those of a mistake; CANNOT_TELL where these are right."""

    def when(run: CaseRun[Routing]) -> Any:
        wrong = made(run.tree["logits"], run.case.k)
        if torch.equal(wrong, run.expected["experts"]):
            return CANNOT_TELL
        return torch.equal(run.got["experts"], wrong)

    return when


def capacity_is(made: Callable[[Routing], float]) -> Callable[[CaseRun[Routing]], Any]:
    def when(run: CaseRun[Routing]) -> Any:
        if not is_whole(run.got["capacity"]) or run.got["capacity"] != made(run.case):
            return False
        return True if capacity_is_right(run) else CANNOT_TELL

    return when


def twice_rounded(case: Routing) -> int:
    return math.ceil(case.factor * math.ceil(case.n_tokens * case.k / case.n_experts))


def is_float(run: CaseRun[Routing]) -> bool:
    """A float that would be right as an int."""
    places = run.got["capacity"]
    return isinstance(places, float) and places in right_capacities(run.case)


def in_turn(experts: Tensor, queue: list[tuple[int, int]], places: int) -> Tensor:
    """Who has a place if (token, choice) ask in this order."""
    kept, taken = torch.zeros_like(experts, dtype=torch.bool), {}
    for token, choice in queue:
        expert = int(experts[token, choice])
        kept[token, choice] = taken.get(expert, 0) < places
        taken[expert] = taken.get(expert, 0) + 1
    return kept


@once
def made_kept(run: CaseRun[Routing], how: str) -> Tensor:
    """Who has a place by a mistake."""
    case, experts = run.case, run.got["experts"]
    tokens, choices = range(case.n_tokens), range(case.k)
    by_choice = [(token, choice) for choice in choices for token in tokens]
    if how == "token by token":
        return in_turn(experts, [(token, choice) for token in tokens for choice in choices], case.places)
    if how in ("most likely first", "highest score first"):
        logits = run.tree["logits"]
        marks = (logits.softmax(-1) if how == "most likely first" else logits).gather(1, experts)
        return in_turn(experts, sorted(by_choice, key=lambda at: -float(marks[at])), case.places)
    if how == "each choice has its own":
        return torch.cat([in_turn(experts[:, [i]], [(token, 0) for token in tokens], case.places) for i in choices], 1)
    if how == "whole tokens":
        return in_turn(experts, by_choice, case.places).all(1, keepdim=True).expand(-1, case.k)
    if how in ("one place more", "one place less"):
        return in_turn(experts, by_choice, case.places + (1 if how == "one place more" else -1))
    if how == "choices for tokens":
        return in_turn(experts, by_choice, case.places).t().reshape(-1, case.k)
    if how == "last ones":
        return in_turn(experts, by_choice[::-1], case.places)
    return ~in_turn(experts, by_choice, case.places)


def kept_is(how: str) -> Callable[[CaseRun[Routing]], Any]:
    """A hint's condition: the choices that have a place are those of a mistake; CANNOT_TELL where these are right."""

    def when(run: CaseRun[Routing]) -> Any:
        if not torch.equal(run.got["kept"], made_kept(run, how)):
            return False
        return True if kept_are_the_first(run) else CANNOT_TELL

    return when


@once
def shares(run: CaseRun[Routing]) -> tuple[Tensor, Tensor]:
    """By expert the share of tokens that chose it, and its mean probability; float64."""
    chances = run.tree["logits"].double().softmax(-1)
    counts = run.expected["experts"].flatten().bincount(minlength=run.case.n_experts)
    return counts.double() / run.case.n_tokens, chances.mean(0)


def loss_is(made: Callable[[CaseRun[Routing]], Tensor | float]) -> Callable[[CaseRun[Routing]], Any]:
    """A hint's condition: the loss is that of a mistake; CANNOT_TELL where the mistake changes nothing."""

    def when(run: CaseRun[Routing]) -> Any:
        got = run.got["loss"]
        wrong = torch.as_tensor(made(run)).to(torch.float32)
        if compare(run.expected["loss"], wrong, CLOSE) is None:
            return CANNOT_TELL
        return compare(wrong, torch.as_tensor(got).to(torch.float32), CLOSE) is None

    return when


def first_choices(run: CaseRun[Routing]) -> Tensor:
    first = run.expected["experts"][:, 0].bincount(minlength=run.case.n_experts) / run.case.n_tokens
    return run.case.n_experts * (first * shares(run)[1]).sum()


def of_the_chosen(run: CaseRun[Routing]) -> Tensor:
    """Mean probabilities with those of experts that a token did not choose left out."""
    chances = run.tree["logits"].double().softmax(-1)
    chosen = torch.zeros_like(chances).scatter_(1, run.expected["experts"], 1.0)
    return run.case.n_experts * (shares(run)[0] * (chances * chosen).mean(0)).sum()


def probabilities_renewed(run: CaseRun[Routing]) -> Tensor:
    """As `of_the_chosen`, with a token's probabilities divided so that those of its choices add up to 1."""
    best = run.tree["logits"].double().topk(run.case.k)
    chances = torch.zeros_like(run.tree["logits"], dtype=torch.float64).scatter_(
        1, best.indices, best.values.softmax(-1)
    )
    return run.case.n_experts * (shares(run)[0] * chances.mean(0)).sum()


def no_gradient(run: CaseRun[Routing]) -> Any:
    if compare(run.expected["loss"], torch.as_tensor(run.got["loss"]).float(), CLOSE) is not None:
        return False
    if bool((run.expected["gradient"].abs() < 1e-6).all()):
        return CANNOT_TELL
    return bool((run.got["gradient"] == 0).all())
