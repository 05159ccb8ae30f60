"""Lab 19: what is true of tokens that go to experts with few places, and of the loss that evens out their load.

Experts are those of torch.topk, the loss is that of transformers; who has a place is told by a property.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab19.moe_capacity import Routing
from labkit.spec import CaseRun, Tolerance

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
