"""Lab 19: what is true of tokens that go to experts with few places, and of the loss that evens out their load.

Experts are those of torch.topk, the loss is that of transformers; who has a place is told by a property.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab19.moe_capacity import Routing
from labkit.oracles.calls import as_call
from labkit.oracles.hints import any_of, once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-7, rtol=1e-4)


def expect(run: CaseRun[Routing]) -> dict[str, Any]:
    """Experts, and the loss with its gradient; the places are judged by properties."""
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

    case, logits = run.case, run.tree["logits"].clone().requires_grad_()
    loss = load_balancing_loss_func((logits,), case.n_experts, case.k)
    loss.backward()
    # kept and capacity are what came back: `judge` is about them.
    return {
        "capacity": run.got["capacity"],
        "experts": run.tree["logits"].topk(case.k).indices,
        "kept": run.got["kept"],
        "loss": loss.detach(),
        "gradient": logits.grad,
    }


def load(case: Routing) -> float:
    """What an expert gets where all get the same, times the factor."""
    return case.factor * case.n_tokens * case.k / case.n_experts


def right_capacities(case: Routing) -> set[int]:
    """The least whole number that is not below the load; several where the rounding of a product decides, such as
    1.1 x 10, which is 11.000000000000002 in float64."""
    n, n_experts, k, factor = case.n_tokens, case.n_experts, case.k, case.factor
    loads = (
        factor * n * k / n_experts,
        n * k / n_experts * factor,
        n / n_experts * k * factor,
        factor * (n / n_experts) * k,
        factor / n_experts * n * k,
        n * k * Fraction(factor) / n_experts,
        n * k * Fraction(str(factor)) / n_experts,
    )
    return set(map(math.ceil, loads))


def is_whole(places: Any) -> bool:
    """Whether it is an int, as a number of places has to be."""
    return isinstance(places, int) and not isinstance(places, bool)


def capacity_is_right(run: CaseRun[Routing]) -> str | None:
    """A property: one of `right_capacities`."""
    places = run.got["capacity"]
    if not is_whole(places):
        return f"capacity returned {places!r}, and a whole number of Python is asked for"
    if places not in right_capacities(run.case):
        return f"capacity is {places}, and {run.case.factor:g} times an even load are {load(run.case):g} places"
    return None


def kept_are_the_first(run: CaseRun[Routing]) -> str | None:
    """A property: each expert fills its places, all first choices in order, then all second ones."""
    kept, experts = run.got["kept"], run.expected["experts"]
    if not isinstance(kept, Tensor) or kept.dtype != torch.bool or kept.shape != experts.shape:
        what = f"{kept.dtype} of shape {tuple(kept.shape)}" if isinstance(kept, Tensor) else type(kept).__name__
        return f"kept is {what}, and bool of shape {tuple(experts.shape)} is asked for"
    if not torch.equal(run.got["experts"], experts):
        return None
    queue, has_place = experts.t().flatten(), kept.t().flatten()
    for expert in range(run.case.n_experts):
        mine = has_place[queue == expert]
        wanted = min(run.case.places, len(mine))
        if int(mine.sum()) != wanted:
            return f"expert {expert} is chosen {len(mine)} times, has {run.case.places} places, and keeps {mine.sum()}"
        if not bool(mine[:wanted].all()):
            return f"expert {expert} keeps a choice that comes later, and drops an earlier one"
    return None


# Mistakes -------------------------------------------------------------------------------------------------------------


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


def in_words(run: Observation) -> str:
    case = run.case
    logits = f"<float32 of shape ({case.n_tokens}, {case.n_experts})>"
    return (
        f"{as_call('capacity', case.n_tokens, case.n_experts, case.k, case.factor)}, "
        f"dispatch({logits}, {case.k}, {case.places}), balancing_loss({logits}, {case.k})"
    )


MOE_CAPACITY = Oracle(
    id="19-moe-capacity",
    call=in_words,
    places={
        "experts": "expert",
        "kept": "kept",
        "loss": "balancing_loss",
        "gradient": "gradient of balancing_loss",
        "capacity": "capacity",
    },
    expect=expect,
    tolerance=lambda run: {"loss": CLOSE, "gradient": CLOSE},
    judge=(inputs_untouched, capacity_is_right, kept_are_the_first),
    axis="other numbers of tokens, experts and choices, and loads that are more or less even",
    errors={
        "must match the size of tensor": "If a count of choices is too short: bincount ends with the largest expert "
        "that was chosen. bincount(minlength=n_experts) also counts those after it.",
    },
    diagnose=(
        Hint(
            # Where rounding to the nearest number is wrong, it rounds down.
            capacity_is(lambda case: int(load(case))),
            "capacity was rounded down, or to the nearest whole number. An expert needs places for all of its even "
            "share: round up.",
        ),
        Hint(
            capacity_is(lambda case: int(load(case)) + 1),
            "capacity is one too many where the load is a whole number: int(x) + 1 makes 4 of 3.0. math.ceil "
            "rounds up.",
        ),
        Hint(
            is_float,
            "The number of places is right, but it is a float. math.ceil returns an int; // of floats does not.",
        ),
        Hint(
            capacity_is(lambda case: math.ceil(load(case) / case.k)),
            "capacity has no k in it: each token asks for k places, so there are n_tokens * k choices to hand out.",
        ),
        Hint(
            experts_are(lambda logits, k: logits.topk(k).indices.sort(-1).values),
            "The choices of a token stand in the order of their numbers. The best stands first: first choices get "
            "places before second ones.",
        ),
        Hint(
            experts_are(lambda logits, k: logits.topk(k).indices.flip(-1)),
            "The choices of a token stand in the opposite order: the best one comes first.",
        ),
        Hint(
            experts_are(lambda logits, k: logits.topk(k, largest=False).indices),
            "These are the experts with the lowest scores. argsort sorts upwards unless you say descending=True.",
        ),
        Hint(
            kept_is("token by token"),
            "Tokens were served one after the other, with all their choices. But all *first* choices come before all "
            "second ones.",
        ),
        Hint(
            any_of(kept_is("most likely first"), kept_is("highest score first")),
            "The choices with the highest scores were kept. Here places go first come, first served: all first "
            "choices in the order of the tokens, then all second ones.",
        ),
        Hint(
            kept_is("each choice has its own"),
            "First and second choices were counted apart, as if an expert had its places once for first choices and "
            "again for second ones. It has them once, for all choices together.",
        ),
        Hint(
            kept_is("whole tokens"),
            "A token that found no place at one expert lost its others, too. Only the choice without a place is "
            "dropped.",
        ),
        Hint(
            kept_is("one place less"),
            "Each expert keeps one choice too few: the choice with the number `places` is the last that has a place.",
        ),
        Hint(
            kept_is("choices for tokens"),
            "kept is right and stands in other places: the queue has all first choices, then all second ones. Bring it "
            "back to (k, tokens) first, and transpose that.",
        ),
        Hint(
            capacity_is(twice_rounded),
            "The even load was rounded up before it was multiplied by factor: round once, at the end.",
        ),
        Hint(
            kept_is("one place more"),
            "Each expert keeps one choice too many. Counted from 1, as by cumsum, number `places` is the last to be "
            "kept.",
        ),
        Hint(
            kept_is("last ones"),
            "The last choices were kept, and the first ones dropped: it is first come, first served.",
        ),
        Hint(kept_is("dropped"), "kept says which choices were dropped. It is True where there is a place."),
        Hint(
            loss_is(lambda run: run.case.n_experts * shares(run)[0].mean() * shares(run)[1].mean()),
            "The shares and the probabilities were averaged over the experts before they were multiplied. Both "
            "averages are the same for every routing, so this loss never changes: multiply for each expert, then add "
            "up.",
        ),
        Hint(
            loss_is(lambda run: (shares(run)[0] * shares(run)[1]).sum()),
            "The factor n_experts is missing: the sum over the experts is multiplied by their number.",
        ),
        Hint(
            loss_is(lambda run: run.case.n_experts * (shares(run)[0] * shares(run)[1]).sum() / run.case.k),
            "The shares were divided by k. Here f of an expert is the share of *tokens* that chose it, so all f "
            "together are k, not 1.",
        ),
        Hint(
            loss_is(first_choices),
            "Only first choices were counted: f is the share of tokens that have an expert among their k choices.",
        ),
        Hint(
            loss_is(lambda run: run.case.n_tokens * run.case.n_experts * (shares(run)[0] * shares(run)[1]).sum()),
            "The probabilities of an expert were added up over the tokens. P is their average.",
        ),
        Hint(
            loss_is(lambda run: run.case.n_experts * shares(run)[1].square().sum()),
            "The probabilities were multiplied by themselves. f is made of counts: the share of tokens that have the "
            "expert among their choices.",
        ),
        Hint(
            any_of(loss_is(of_the_chosen), loss_is(probabilities_renewed)),
            "The probabilities of experts that a token did not choose are missing. P is the mean over all tokens, "
            "chosen or not.",
        ),
        Hint(
            loss_is(lambda run: run.case.n_experts * (shares(run)[0] * run.tree["logits"].double().mean(0)).sum()),
            "The logits themselves were averaged. Turn them into probabilities first, with a softmax over the experts.",
        ),
        Hint(
            loss_is(
                lambda run: run.case.n_experts * (shares(run)[0] * run.tree["logits"].double().softmax(0).mean(0)).sum()
            ),
            "The softmax went over the tokens. The probabilities of a token are those of its experts: dim=-1.",
        ),
        Hint(
            no_gradient,
            "The loss is right, but has no gradient: it cannot change the router. The shares f are counts and have "
            "none, but the probabilities P must keep theirs.",
        ),
    ),
)
