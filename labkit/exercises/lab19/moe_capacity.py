"""Lab 19: which tokens an expert takes, how many places it has, and a loss that evens out the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise


@dataclass(frozen=True)
class Routing(Case):
    """k of n_experts for each of n_tokens tokens. places: that an expert has, in `dispatch`. factor: of `capacity`.
    skew: how much better some experts suit all tokens alike."""

    n_tokens: int
    n_experts: int
    k: int
    places: int
    factor: float = 1.25
    skew: float = 1.0


def logits_of(case: Routing, gen: torch.Generator) -> dict[str, Tensor]:
    """logits: (n_tokens, n_experts), float32."""
    shared = torch.randn(case.n_experts, generator=gen) * case.skew
    return {"logits": torch.randn(case.n_tokens, case.n_experts, generator=gen) + shared}


def drive(ans, case: Routing, tree: dict, stage) -> dict[str, Any]:
    """What the three functions return, and the gradient of the loss."""
    places = ans.capacity(case.n_tokens, case.n_experts, case.k, case.factor)
    experts, kept = ans.dispatch(tree["logits"].clone(), case.k, case.places)
    logits = tree["logits"].clone().requires_grad_()
    loss = ans.balancing_loss(logits, case.k)
    if isinstance(loss, Tensor) and loss.requires_grad:
        loss.backward()
    return {
        "capacity": places,
        "experts": experts,
        "kept": kept,
        "loss": loss.detach() if isinstance(loss, Tensor) else loss,
        "gradient": torch.zeros_like(logits) if logits.grad is None else logits.grad,
    }


MOE_CAPACITY = Exercise(
    id="19-moe-capacity",
    title="Places at the experts",
    points=3,
    minutes=30,
    difficulty=2,
    answers=(Answer("capacity"), Answer("dispatch"), Answer("balancing_loss")),
    public=(
        Routing(12, 4, 1, places=3, factor=1.0),
        Routing(16, 4, 2, places=9),
        Routing(40, 8, 2, places=7, factor=1.1, skew=2.0),
        Routing(5, 8, 2, places=1, factor=1.0),
        Routing(9, 3, 3, places=5, factor=0.7),
        Routing(22, 5, 1, places=4),  # 1.25 times 4.4 places are 5.5: rounded up once, not twice
    ),
    inputs=logits_of,
    drive=drive,
)
