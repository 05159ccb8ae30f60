"""Lab 15: what is asked, given and run for SGD whose gradients come late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise


@dataclass(frozen=True)
class Late(Case):
    """n_steps of SGD on a quadratic of n_weights weights whose gradients are `delay` steps old, and the largest stable
    step size for a curvature.
    """

    delay: int = 2
    n_steps: int = 8
    n_weights: int = 3
    lr: float = 0.2
    curvature: float = 1.0


def late_inputs(case: Late, gen: torch.Generator) -> dict[str, Any]:
    """A symmetric matrix of curvatures between 0.5 and 1.5, the minimum, and the first weights, in float64."""
    basis, _ = torch.linalg.qr(torch.randn(case.n_weights, case.n_weights, generator=gen, dtype=torch.float64))
    curvatures = 0.5 + torch.rand(case.n_weights, generator=gen, dtype=torch.float64)
    return {
        "curvatures": basis * curvatures @ basis.T,
        "minimum": torch.randn(case.n_weights, generator=gen, dtype=torch.float64),
        "weights": torch.randn(case.n_weights, generator=gen, dtype=torch.float64),
    }


def drive_stale(ans, case: Late, tree: dict, stage) -> dict[str, Any]:
    """weights: after each step; asked: where gradients were computed, in order; lr: the largest stable step size."""
    curvatures, minimum = tree["curvatures"].clone(), tree["minimum"].clone()
    asked = []

    def gradient(weights: Tensor) -> Tensor:
        asked.append(weights.detach().clone())
        return curvatures @ (weights - minimum)

    found = ans.stale_sgd(gradient, tree["weights"], case.lr, case.delay, case.n_steps)
    return {
        "weights": list(found),
        "asked": asked,
        "lr": float(ans.largest_stable_lr(case.curvature, case.delay)),
    }


STALE = Exercise(
    id="15-stale",
    title="Gradients that come late",
    points=0.3,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("stale_sgd"), Answer("largest_stable_lr")),
    public=(
        Late(delay=0),
        Late(delay=1, curvature=2.0),
        Late(delay=3, n_steps=10, curvature=0.5),
        Late(delay=6, n_steps=4, curvature=8.0),
    ),
    inputs=late_inputs,
    drive=drive_stale,
)
