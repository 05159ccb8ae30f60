"""Lab 19: the oracle of experts with few places: capacities, choices, who has a place, and the balancing loss.

What is true stands in `capacity_values`, and what mistakes make in `capacity_mistakes`.
"""

from __future__ import annotations

import math

from labkit.compare import inputs_untouched
from labkit.oracles.calls import as_call
from labkit.oracles.hints import any_of
from labkit.oracles.lab19.capacity_mistakes import (
    capacity_is,
    experts_are,
    first_choices,
    is_float,
    kept_is,
    loss_is,
    no_gradient,
    of_the_chosen,
    probabilities_renewed,
    shares,
    twice_rounded,
)
from labkit.oracles.lab19.capacity_values import CLOSE, capacity_is_right, expect, kept_are_the_first, load
from labkit.spec import Hint, Observation, Oracle


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
