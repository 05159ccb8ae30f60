"""Lab 05: a checkpoint, which throws away what a function needs for its backward pass and makes it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab05.warm import warm_up_autograd
from labkit.spec import Answer, Case, Exercise, Run

Checkpoint = Callable[..., Tensor]
"""(fn, *args) -> fn(*args)."""

FAR_APART = 9.0
"""Stands for the distance of the second draw from the first where there was no second."""
N_NOTED = 8


@dataclass(frozen=True)
class Blocks(Case):
    """A chain of n_blocks residual blocks of `width`, each wide inside (n_hidden) and with dropout, on n_rows rows."""

    n_rows: int = 64
    width: int = 16
    n_hidden: int = 256
    n_blocks: int = 6
    drop: float = 0.25

    @property
    def x_bytes(self) -> int:
        """What goes in and out of a block, in float32."""
        return 4 * self.n_rows * self.width

    @property
    def hidden_bytes(self) -> int:
        """One tensor inside a block."""
        return 4 * self.n_rows * self.n_hidden

    @property
    def parameter_bytes(self) -> int:
        """The parameters of all blocks, gates included."""
        return 4 * self.n_blocks * self.n_hidden * (2 * self.width + 1)


@dataclass
class BlockDraws:
    """What happened inside the blocks: a few of the random numbers of each run of each block, in order."""

    noise: list[list[Tensor]] = field(default_factory=list)

    @property
    def calls(self) -> Tensor:
        """How often each block ran."""
        return torch.tensor([len(runs) for runs in self.noise])

    @property
    def redrawn(self) -> Tensor:
        """How far the random numbers of a block's last run lie from those of its first."""
        far = [float((runs[-1] - runs[0]).abs().max()) if len(runs) > 1 else FAR_APART for runs in self.noise]
        return torch.tensor(far)


def block_inputs(case: Blocks, gen: torch.Generator) -> dict[str, Any]:
    """x and probe (n_rows, width); of each block w_in, w_out, gate and shift, which are integers."""

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(shape, generator=gen)

    width, n_hidden = case.width, case.n_hidden
    return {
        "x": draw(case.n_rows, width),
        "probe": draw(case.n_rows, width),
        "blocks": [
            {
                "w_in": draw(width, n_hidden, scale=width**-0.5),
                "w_out": draw(n_hidden, width, scale=n_hidden**-0.5),
                "gate": 1 + draw(n_hidden, scale=0.3),
                "shift": torch.randint(-1, 2, (n_hidden,), generator=gen),
            }
            for _ in range(case.n_blocks)
        ],
    }


def block(x: Tensor, drop: float, gate: Tensor, shift: Tensor, *, weights: dict[str, Tensor], noted: list) -> Tensor:
    """One block. It draws from the CPU's generator, twice, and on a GPU from that one's as well.

    What is dropped comes from the CPU alone, so that it is the same on every device.
    """
    hidden = F.gelu(x @ weights["w_in"]) * gate + shift
    noise = torch.rand(hidden.shape)
    draws = [noise.reshape(-1)[:N_NOTED], torch.rand(N_NOTED)]
    if x.is_cuda:
        draws.append(torch.rand(N_NOTED, device=x.device).cpu())
    noted.append(torch.cat(draws))
    return x + (hidden * (noise.to(x.device) >= drop) / (1 - drop)) @ weights["w_out"]


def forward(checkpoint: Checkpoint, case: Blocks, leaves: dict[str, Any], trace: BlockDraws) -> Tensor:
    """Every block through checkpoint(fn, x, drop, gate, shift); the two matrices are fn's own, as in a module.

    The gates have a graph behind them that all blocks share: whoever follows it from one block alone tears it down.
    """
    torch.manual_seed(1)
    out, gates = leaves["x"], torch.stack([weights["gate"] for weights in leaves["blocks"]]).square()
    for weights, gate in zip(leaves["blocks"], gates, strict=True):
        trace.noise.append([])
        fn = partial(block, weights=weights, noted=trace.noise[-1])
        out = checkpoint(fn, out, case.drop, gate, weights["shift"])
    return out


def leaves_of(tree: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """The inputs as leaves of a graph; the shifts and the probe need no gradient."""
    x = tree["x"].to(device).detach().requires_grad_()
    blocks = [
        {name: value.to(device).detach().requires_grad_(name != "shift") for name, value in weights.items()}
        for weights in tree["blocks"]
    ]
    return {"x": x, "probe": tree["probe"].to(device), "blocks": blocks}


def backward(out: Tensor, leaves: dict[str, Any], trace: BlockDraws) -> dict[str, Any]:
    """Run the backward pass of (out * probe).sum(); what is returned is what the judge compares.

    error is the text of what it raised. next_random: what the generator gives next.
    """
    error, loss = None, (out * leaves["probe"]).sum()
    if loss.requires_grad:
        try:
            loss.backward()
        except NotImplementedError:
            raise  # a blank stub, which is not a wrong answer
        except RuntimeError as raised:
            error = str(raised).split("\n")[0][:120]
    names = ("w_in", "w_out", "gate")
    return {
        "error": error,
        "loss": loss.detach(),
        "grads": {
            "x": leaves["x"].grad,
            "blocks": [{name: weights[name].grad for name in names} for weights in leaves["blocks"]],
        },
        "next_random": torch.rand(4),
        "calls": trace.calls,
        "redrawn": trace.redrawn,
    }


def run_blocks(checkpoint: Checkpoint, case: Blocks, tree: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Forward and backward, nothing measured."""
    leaves, trace = leaves_of(tree, device), BlockDraws()
    return backward(forward(checkpoint, case, leaves, trace), leaves, trace)


def plain(fn: Callable[..., Tensor], *args: object) -> Tensor:
    """Calls fn, as if there were no checkpoint."""
    return fn(*args)


def drive_checkpoint(ans, case: Blocks, tree: dict, stage) -> dict[str, Any]:
    """One training pass, measured: `saved` when the forward pass is done, `memory` over all of it.

    The student's first call, on a few rows of other numbers, is measured as well: what it sets aside is not free.
    PyTorch is warmed up without the student's code.
    """
    few = Blocks(4, 4, 8, 2, case.drop)
    some = block_inputs(few, torch.Generator().manual_seed(2))
    warm_up_autograd(stage.device)
    run_blocks(plain, few, some, stage.device)
    leaves, trace = leaves_of(tree, stage.device), BlockDraws()
    with stage.meter("memory"):
        run_blocks(ans.checkpoint, few, some, stage.device)
        with stage.meter("saved"):
            out = forward(ans.checkpoint, case, leaves, trace)
        return backward(out, leaves, trace)


CHECKPOINT = Exercise(
    id="05-checkpoint",
    title="Forget, and compute again",
    points=4,
    minutes=25,
    difficulty=3,
    answers=(Answer("checkpoint"),),
    public=(Blocks(), Blocks(96, 8, 160, 4, drop=0.5), Blocks(64, 16, 256, 5, drop=0.0)),
    inputs=block_inputs,
    drive=drive_checkpoint,
    run=Run(wall_s=20.0),
    meters=("memory", "saved"),
    forbids=(
        "torch.utils.checkpoint.checkpoint",
        "torch.utils.checkpoint.checkpoint_sequential",
        "torch.utils.checkpoint.CheckpointFunction",
    ),
)
