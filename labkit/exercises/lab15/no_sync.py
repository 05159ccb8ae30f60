"""Lab 15: what is asked, given and run for gradient accumulation that talks in the last micro-step only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.ranks import Comm
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class MicroBatches(Case):
    """A rank's batch in each of n_steps steps: micro-batches of so many rows, the same numbers on all ranks."""

    n_ranks: int = 2
    rows: tuple[int, ...] = (4, 4, 4)
    width: int = 6
    n_steps: int = 2


class Replica(nn.Module):
    """The plainest data parallel wrapper: each gradient is averaged over the ranks in its hook.

    Like PyTorch's it looks at `require_backward_grad_sync` in forward, for the backward pass that follows.
    open and most_open: forward passes whose backward pass has not begun. talked: micro-steps that sent gradients.
    """

    def __init__(self, module: nn.Module, comm: Comm) -> None:
        super().__init__()
        self.module, self.comm = module, comm
        self.require_backward_grad_sync = True
        self.open = self.most_open = self.n_forward = 0
        self.talked: list[int] = []
        self._sync = True
        for parameter in module.parameters():
            parameter.register_post_accumulate_grad_hook(self._average)

    def forward(self, x: Tensor) -> Tensor:
        self._sync = self.require_backward_grad_sync
        self.n_forward += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        out = self.module(x)
        out.register_hook(self._close)
        return out

    def _close(self, grad: Tensor) -> None:
        self.open -= 1

    def _average(self, parameter: Tensor) -> None:
        if self._sync:
            if self.n_forward not in self.talked:
                self.talked.append(self.n_forward)
            self.comm.all_reduce(parameter.grad, op="avg")


def network(case: MicroBatches, weights: list[Tensor]) -> nn.Sequential:
    """Two layers with these weights."""
    model = nn.Sequential(nn.Linear(case.width, case.width), nn.Tanh(), nn.Linear(case.width, 1))
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=True):
            parameter.copy_(value)
    return model


def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """The mean over the rows."""
    x, y = batch
    return F.mse_loss(model(x), y)


def micro_inputs(case: MicroBatches, gen: torch.Generator) -> dict[str, Any]:
    """weights, for all; x and y of each rank by step and micro-batch."""

    def batches(n_columns: int) -> list[list[Tensor]]:
        return [[torch.randn(n, n_columns, generator=gen) for n in case.rows] for _ in range(case.n_steps)]

    shapes = [
        parameter.shape
        for parameter in nn.Sequential(nn.Linear(case.width, case.width), nn.Linear(case.width, 1)).parameters()
    ]
    return {
        "weights": [torch.randn(shape, generator=gen) for shape in shapes],
        "ranks": [{"x": batches(case.width), "y": batches(1)} for _ in range(case.n_ranks)],
    }


def flags_of(no_sync: Any, ddp: Replica) -> tuple[list[bool], bool]:
    """The switch inside of the context, in a second one inside, after that, after both, and after an error; and whether
    the error came out of the context."""
    flags = []
    with no_sync(ddp):
        flags.append(ddp.require_backward_grad_sync)
        with no_sync(ddp):
            flags.append(ddp.require_backward_grad_sync)
        flags.append(ddp.require_backward_grad_sync)
    flags.append(ddp.require_backward_grad_sync)
    came_out = False
    try:
        with no_sync(ddp):
            raise _Expected
    except _Expected:
        came_out = True
    flags.append(ddp.require_backward_grad_sync)
    return flags, came_out


class _Expected(Exception):
    pass


def drive_no_sync(ans, case: MicroBatches, tree: dict, stage) -> dict[str, Any]:
    """grads: of each step. talked: the micro-steps with communication, from 1 on. The rest: see flags_of."""
    ddp = Replica(network(case, tree["weights"]).to(stage.device), stage.comm)
    grads = []
    for xs, ys in zip(tree["mine"]["x"], tree["mine"]["y"]):
        ddp.zero_grad()
        batches = [(x.to(stage.device), y.to(stage.device)) for x, y in zip(xs, ys)]
        ans.accumulate(ddp, batches, loss_of)
        grads.append([None if one.grad is None else one.grad.clone() for one in ddp.parameters()])
    talked, most_open = ddp.talked, ddp.most_open
    fresh = Replica(network(case, tree["weights"]), stage.comm)
    flags, came_out = flags_of(ans.no_sync, fresh)
    return {"grads": grads, "most_open": most_open, "talked": talked, "flags": flags, "error_came_out": came_out}


NO_SYNC = Exercise(
    id="15-no-sync",
    title="Accumulate without communicating",
    points=2,
    minutes=15,
    difficulty=2,
    answers=(Answer("no_sync"), Answer("accumulate")),
    public=(
        MicroBatches(),
        MicroBatches(n_ranks=3, rows=(5, 3, 1)),
        MicroBatches(rows=(4,)),
        MicroBatches(n_ranks=1, rows=(2, 2)),
    ),
    inputs=micro_inputs,
    drive=drive_no_sync,
    run=Run(ranks=lambda case: case.n_ranks),
)
