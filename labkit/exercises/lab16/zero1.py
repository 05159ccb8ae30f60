"""Lab 16: what is asked, given and run for an optimizer whose states are cut over the ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab16.optimizers import Maker, one_sign
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class ShardedSteps(Case):
    """n_steps steps with given gradients. idle: the number of a parameter that has no gradient, -1 for none."""

    n_ranks: int = 3
    shapes: tuple[tuple[int, ...], ...] = ((4, 5), (7,))
    optimizer: str = "momentum"
    n_steps: int = 3
    idle: int = -1

    @property
    def n_elements(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)


def step_inputs(case: ShardedSteps, gen: torch.Generator) -> dict[str, Any]:
    """params, the same on all ranks; of each rank grads[step][parameter]."""
    params = [torch.randn(shape, generator=gen) for shape in case.shapes]
    drawn = [[one_sign(shape, case.n_ranks, gen) for shape in case.shapes] for _ in range(case.n_steps)]
    ranks = [{"grads": [[each[rank] for each in step] for step in drawn]} for rank in range(case.n_ranks)]
    return {"params": params, "ranks": ranks}


def drive_zero1(ans, case: ShardedSteps, tree: dict, stage) -> dict[str, Any]:
    """after: the parameters after each step. state_bytes and n_updates: of the optimizers made with make_optimizer."""
    params = [value.clone().to(stage.device).requires_grad_() for value in tree["params"]]
    maker, after = Maker(case.optimizer), []
    optimizer = ans.ZeRO1(params, stage.comm, maker)
    for grads in tree["mine"]["grads"]:
        for number, (param, grad) in enumerate(zip(params, grads, strict=True)):
            param.grad = None if number == case.idle else grad.clone().to(stage.device)
        optimizer.step()
        after.append([param.detach().clone() for param in params])
    return {"after": after, "state_bytes": maker.state_bytes(), "n_updates": maker.n_steps}


ZERO1 = Exercise(
    id="16-zero1",
    title="Cut the optimizer states",
    points=4,
    minutes=30,
    difficulty=3,
    answers=(Answer("ZeRO1"),),
    public=(
        ShardedSteps(),
        ShardedSteps(4, ((3, 7), (5,), (2, 2)), "adamw"),
        ShardedSteps(2, ((6, 4), (8,)), "adamw", idle=1),
        ShardedSteps(4, ((2, 2), (1,)), n_steps=2),
        ShardedSteps(5, ((3,),), "adamw", n_steps=2),
        ShardedSteps(1, ((3, 2),), "adamw"),
    ),
    inputs=step_inputs,
    drive=drive_zero1,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
)
