"""Lab 15: what is asked, given and run for an optimizer that averages gradients in its step, as Horovod's does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from labkit.exercises.lab15.ddp import LEARNING_RATE, Job, build, cluster_of, job_inputs
from labkit.meters import track_comm
from labkit.spec import Answer, Exercise, Run


@dataclass(frozen=True)
class Wrapped(Job):
    """A job in which the optimizer averages. clips: by train_step; otherwise step() is called after the backward pass
    and nothing else, and max_norm has no effect.
    """

    clips: bool = True


def drive_wrapper(ans, case: Wrapped, tree: dict, stage) -> dict[str, Any]:
    """parameters at the end; calls: the all-reduces as this rank made them, for hints.

    The buffers are rank 0's from the start: an optimizer knows nothing of them.
    """
    mine = tree["mine"]
    net = build(case, mine, stage.rank, stage.comm).to(stage.device)
    for buffer in net.buffers():
        stage.comm.broadcast(buffer, 0)
    named = dict(net.named_parameters())
    first = [parameter for name, parameter in named.items() if not name.startswith("blocks")]
    second = [parameter for name, parameter in named.items() if name.startswith("blocks")]
    plain = torch.optim.SGD([{"params": first}, {"params": second}], lr=LEARNING_RATE)
    with track_comm() as log:
        optimizer = ans.AveragingOptimizer(plain, stage.comm)
        for tokens, targets in zip(mine["tokens"].to(stage.device), mine["targets"].to(stage.device)):
            loss = F.cross_entropy(net(tokens), targets)
            if case.clips:
                ans.wrapped_step(optimizer, loss, case.max_norm)
            else:
                loss.backward()
                optimizer.step()
                net.zero_grad()
    reduces = [call for call in log.calls if call.name == "all_reduce"]
    return {
        "parameters": [parameter.detach().clone() for parameter in net.parameters()],
        "calls": {"bytes": [call.n_bytes for call in reduces]},
    }


OPTIMIZER_WRAPPER = Exercise(
    id="15-optimizer-wrapper",
    title="An all-reduce in the optimizer",
    points=0.4,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("AveragingOptimizer"), Answer("wrapped_step")),
    public=(
        Wrapped(n_blocks=3, max_norm=0.2),
        Wrapped(n_ranks=3, n_blocks=2, clips=False),
        Wrapped(n_ranks=4, n_blocks=3, odd_ranks_skip=1, max_norm=0.2),
        Wrapped(n_ranks=1, n_blocks=2),
    ),
    inputs=job_inputs,
    drive=drive_wrapper,
    run=Run(ranks=lambda case: case.n_ranks, cluster=cluster_of, wall_s=30.0),
)
