"""Lab 15: what is asked, given and run for batch normalization over the rows of all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise, Run

EPS, MOMENTUM = 1e-2, 0.1
"""EPS is large, so that its place under the root can be seen."""


@dataclass(frozen=True)
class Rows(Case):
    """rows: of each rank. mean: of the activations, in units of their standard deviation."""

    rows: tuple[int, ...] = (8, 8)
    n_channels: int = 5
    mean: float = 0.5

    @property
    def n_ranks(self) -> int:
        return len(self.rows)


def row_inputs(case: Rows, gen: torch.Generator) -> dict[str, Any]:
    """weight, bias, running_mean, running_var (n_channels) for all; x and the loss's gradient (rows, n_channels)."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=gen)

    channels = case.n_channels
    return {
        "weight": draw(channels),
        "bias": draw(channels),
        "running_mean": draw(channels),
        "running_var": 0.5 + torch.rand(channels, generator=gen),
        # Each rank's rows lie elsewhere, so that what one of them knows is not enough.
        "ranks": [
            {"x": case.mean + draw(channels) + draw(n_rows, channels), "grad": draw(n_rows, channels)}
            for n_rows in case.rows
        ],
    }


def drive_sync_bn(ans, case: Rows, tree: dict, stage) -> dict[str, Any]:
    """out and the gradients of x, weight and bias on this rank; the running statistics after one step."""
    mine = tree["mine"]
    # The same memory as the inputs', so that what is written into it is seen.
    x, weight, bias = (
        value.detach().to(stage.device).requires_grad_() for value in (mine["x"], tree["weight"], tree["bias"])
    )
    running_mean, running_var = (tree[name].clone().to(stage.device) for name in ("running_mean", "running_var"))
    out = ans.sync_batch_norm(stage.comm, x, running_mean, running_var, weight, bias, MOMENTUM, EPS)
    torch.autograd.backward(out, mine["grad"].to(stage.device))
    return {
        "out": out.detach(),
        "x_grad": x.grad,
        "weight_grad": weight.grad,
        "bias_grad": bias.grad,
        "running_mean": running_mean,
        "running_var": running_var,
    }


SYNC_BN = Exercise(
    id="15-sync-bn",
    title="Batch normalization over all ranks",
    points=0.6,
    optional=True,
    minutes=35,
    difficulty=3,
    answers=(Answer("sync_batch_norm"),),
    public=(
        Rows(),
        Rows((6, 2, 3)),
        Rows((7, 1)),
        Rows((4, 0, 5), n_channels=3),
        # So many rows that they are more than the numbers that may travel.
        Rows((64, 48), mean=2000.0),
        Rows((6,)),
    ),
    inputs=row_inputs,
    drive=drive_sync_bn,
    run=Run(ranks=lambda case: case.n_ranks),
    forbids=("torch.nn.SyncBatchNorm",),
)
