"""Lab 16: what is asked, given and run for gradients that are cut over the ranks during the backward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab16.optimizers import Maker, held_bytes
from labkit.exercises.lab16.shards import ShardedSteps, draw_grads, draw_params, seeds, seen
from labkit.spec import Answer, Exercise, Run

MOMENTS = ("after the backward pass", "between steps")


def loss_of(case: ShardedSteps, params: list[Tensor], seeds_: tuple[int, int], step: int, micro: int) -> Tensor:
    """A loss whose gradients are those that are drawn; the idle parameter is not in it."""
    grads = draw_grads(case, *seeds_, step, micro)
    dots = [torch.dot(p.flatten(), g.flatten()) for k, (p, g) in enumerate(zip(params, grads)) if k != case.idle]
    return torch.stack(dots).sum() / case.n_micro


def drive_zero2(ans, case: ShardedSteps, tree: dict, stage) -> dict[str, Any]:
    """As for 16-zero1; grads_alive: the most bytes in .grad of all parameters after any one's hooks had run."""
    maker, alive = Maker(case.optimizer), [0]
    with stage.meter("memory"):
        params = [value.to(stage.device).requires_grad_() for value in draw_params(case, tree["seed"])]
        optimizer = ans.ZeRO2(params, stage.comm, maker)
        for param in params:
            # Registered after the answer's own hooks, it runs after them.
            param.register_post_accumulate_grad_hook(lambda _: alive.append(held_bytes(p.grad for p in params)))
        for step in range(case.n_steps):
            for micro in range(case.n_micro):
                loss_of(case, params, (tree["seed"], tree["mine"]["seed"]), step, micro).backward()
            stage.mark(MOMENTS[0])
            optimizer.step()
            stage.mark(MOMENTS[1])
    return {
        "after": seen(case, params),
        "state_bytes": maker.state_bytes(),
        "n_updates": maker.n_steps,
        "grads_alive": max(alive),
    }


ZERO2 = Exercise(
    id="16-zero2",
    title="Cut the gradients while they come",
    points=3,
    minutes=20,
    difficulty=3,
    answers=(Answer("ZeRO2"),),
    public=(
        ShardedSteps(),
        ShardedSteps(4, ((3, 7), (5,), (2, 2)), "adamw", n_micro=3),
        ShardedSteps(2, ((6, 4), (8,)), "adamw", n_micro=2, idle=1),
        ShardedSteps(5, ((3,), (2, 2)), n_steps=2, n_micro=2),
        ShardedSteps(3, ((400, 601), (52,), (500, 502), (250_003,)), "momentum", n_steps=2),
        ShardedSteps(1, ((3, 2), (2,)), "adamw", n_micro=2),
    ),
    inputs=seeds,
    drive=drive_zero2,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
    meters=("memory",),
)
