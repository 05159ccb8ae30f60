"""Lab 12: the step of AdamW in one kernel. What is asked, given and run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab12.shapes import PATIENT, Vector, draw
from labkit.spec import Answer, Exercise


@dataclass(frozen=True)
class Step(Vector):
    """step: the number of the step to be taken, from 1 on; at the first one, both moments are zero."""

    step: int = 1
    lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-3
    weight_decay: float = 0.5


def step_inputs(case: Step, gen: torch.Generator) -> dict:
    """Gradients so small that eps counts, and moments as the steps before would have left them."""
    gradients = [draw(case, gen, case.n, scale=0.01) for _ in range(3)]
    before = float(case.step > 1)
    return {
        "param": draw(case, gen, case.n),
        "grad": gradients[0],
        "exp_avg": before * gradients[1],
        "exp_avg_sq": before * gradients[2].square(),
    }


def drive_adamw(ans, case: Step, tree: dict, stage) -> dict:
    """One step, in place."""
    tensors = [tree[name] for name in ("param", "grad", "exp_avg", "exp_avg_sq")]
    with stage.meter("traffic"), stage.meter("compiled"):
        ans.adamw_step(*tensors, case.step, case.lr, case.beta1, case.beta2, case.eps, case.weight_decay)
    return {name: tree[name] for name in ("param", "exp_avg", "exp_avg_sq")}


ADAMW = Exercise(
    id="12-adamw",
    title="The step of AdamW in one kernel",
    points=2,
    minutes=20,
    difficulty=2,
    answers=(Answer("adamw_step"),),
    # The first step second: where 1 - beta**step is 0 by mistake, it raises an error, and the other one has a value.
    public=(Step(1024, step=4, weight_decay=0.3), Step(700)),
    inputs=step_inputs,
    drive=drive_adamw,
    run=PATIENT,
    meters=("traffic", "compiled"),
    full_size=Step(10**9),
)
