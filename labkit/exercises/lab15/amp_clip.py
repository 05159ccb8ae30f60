"""Lab 15: what is asked, given and run for loss scaling and clipping where ranks hold different parts of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise, Run

LEARNING_RATE, MOMENTUM = 0.1, 0.9

Spoiled = tuple[int, int, str, str]
"""(step, rank, "shared" or "own", what is in the gradient there: "inf", "-inf" or "nan")."""


@dataclass(frozen=True)
class ClippedSteps(Case):
    """n_steps steps whose gradients are given. n_own: values of each rank's own table, one number a rank."""

    n_own: tuple[int, ...] = (6, 6)
    n_shared: tuple[int, ...] = (8, 3)
    max_norm: float = 1.0
    scale: float = 1024.0
    n_steps: int = 3
    spoiled: tuple[Spoiled, ...] = ()

    @property
    def n_ranks(self) -> int:
        return len(self.n_own)


def step_inputs(case: ClippedSteps, gen: torch.Generator) -> dict[str, Any]:
    """shared: the parameters that all ranks hold. Of each rank: its table, and its unscaled gradients."""

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=gen)

    ranks = []
    for rank, n_own in enumerate(case.n_own):
        part: dict[str, Any] = {
            "own": draw(n_own),
            "own_grads": [draw(n_own) for _ in range(case.n_steps)],
            "shared_grads": [[draw(n) for n in case.n_shared] for _ in range(case.n_steps)],
        }
        for step, who, where, what in case.spoiled:
            if who == rank:
                grad = part["own_grads"][step] if where == "own" else part["shared_grads"][step][-1]
                grad[-1] = float(what)
        ranks.append(part)
    return {"shared": [draw(n) for n in case.n_shared], "ranks": ranks}


def finite(value: object) -> float | None:
    """A number as it is, None for infinity and NaN."""
    number = float(value)
    return number if math.isfinite(number) else None


def drive_amp_clip(ans, case: ClippedSteps, tree: dict, stage) -> dict[str, Any]:
    """After each step: the parameters, the norm (None where it is not finite), and the scale for the next step."""
    mine = tree["mine"]
    shared = [value.clone().to(stage.device).requires_grad_() for value in tree["shared"]]
    own = [mine["own"].clone().to(stage.device).requires_grad_()]
    optimizer = torch.optim.SGD([*shared, *own], lr=LEARNING_RATE, momentum=MOMENTUM)
    scale = case.scale
    norms, scales, after = [], [], []
    for own_grad, shared_grads in zip(mine["own_grads"], mine["shared_grads"]):
        for parameter, grad in zip((*shared, *own), (*shared_grads, own_grad)):
            parameter.grad = grad.to(stage.device) * scale
        norm, scale = ans.amp_clip_step(stage.comm, shared, own, optimizer, scale, case.max_norm)
        scale = float(scale)
        norms.append(finite(norm))
        scales.append(scale)
        after.append({"shared": [p.detach().clone() for p in shared], "own": own[0].detach().clone()})
    return {"scales": scales, "norms": norms, "after": after}


AMP_CLIP = Exercise(
    id="15-amp-clip",
    title="One verdict for all ranks",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("amp_clip_step"),),
    public=(
        ClippedSteps(),
        ClippedSteps((5, 2, 9), max_norm=1e3),
        ClippedSteps((4, 4), spoiled=((1, 1, "own", "inf"),), n_steps=4),
        ClippedSteps(
            (3, 6, 2), spoiled=((0, 2, "shared", "nan"), (2, 0, "own", "-inf"), (2, 1, "own", "nan")), n_steps=4
        ),
        ClippedSteps((4, 4), spoiled=((1, 0, "shared", "inf"), (1, 1, "shared", "-inf"))),
        ClippedSteps((7,), spoiled=((1, 0, "own", "nan"),)),
    ),
    inputs=step_inputs,
    drive=drive_amp_clip,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
)
