"""Lab 16: what is asked, given and run for an optimizer whose states are cut over the ranks."""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab16.optimizers import Maker
from labkit.exercises.lab16.shards import ShardedSteps, draw_grads, draw_params, seeds, seen
from labkit.spec import Answer, Exercise, Run

MOMENT = "between steps"


def drive_zero1(ans, case: ShardedSteps, tree: dict, stage) -> dict[str, Any]:
    """after: the parameters at the end. state_bytes and n_updates: of the optimizers made with make_optimizer."""
    maker = Maker(case.optimizer)
    with stage.meter("memory"):
        params = [value.to(stage.device).requires_grad_() for value in draw_params(case, tree["seed"])]
        optimizer = ans.ZeRO1(params, stage.comm, maker)
        for step in range(case.n_steps):
            grads = draw_grads(case, tree["seed"], tree["mine"]["seed"], step, 0)
            for number, (param, grad) in enumerate(zip(params, grads, strict=True)):
                param.grad = None if number == case.idle else grad.to(stage.device)
            optimizer.step()
            for param in params:
                param.grad = None
            del grads, grad
            stage.mark(MOMENT)
    return {"after": seen(case, params), "state_bytes": maker.state_bytes(), "n_updates": maker.n_steps}


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
        ShardedSteps(2, ((8,), (6, 4)), "adamw", idle=0),
        ShardedSteps(4, ((2, 2), (1,)), n_steps=2),
        ShardedSteps(5, ((3,),), "adamw", n_steps=2),
        ShardedSteps(3, ((700, 1001), (52,)), "adamw", n_steps=2),
        ShardedSteps(1, ((3, 2),), "adamw"),
    ),
    inputs=seeds,
    drive=drive_zero1,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
    meters=("memory",),
)
