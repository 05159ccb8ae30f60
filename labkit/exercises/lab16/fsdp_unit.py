"""Lab 16: what is asked, given and run for one linear layer whose weight is whole only while it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab16.optimizers import shard_size, warm_up
from labkit.spec import Answer, Case, Exercise, Run

LARGE = 2**17
"""From so many elements of a weight on, only some of its gradient comes back."""
SOME = 997
MOMENTS = ("after the forward pass", "after the backward pass")
N_ROWS = 4


@dataclass(frozen=True)
class Layers(Case):
    """Linear layers without bias, one after the other: widths[k] columns become widths[k + 1]. frozen: layers whose
    weight is not trained."""

    n_ranks: int = 3
    widths: tuple[int, ...] = (5, 7)
    frozen: tuple[int, ...] = ()

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Of the weights, (out, in)."""
        return tuple(zip(self.widths[1:], self.widths[:-1]))

    @property
    def shard_elements(self) -> tuple[int, ...]:
        return tuple(shard_size(a * b, self.n_ranks) for a, b in self.shapes)

    @property
    def n_trained(self) -> int:
        return len(self.shapes) - len(self.frozen)


def seeds(case: Layers, gen: torch.Generator) -> dict[str, Any]:
    """One for the weights, and one for each rank's rows."""
    drawn = torch.randint(2**40, (1 + case.n_ranks,), generator=gen).tolist()
    return {"seed": drawn[0], "ranks": [{"seed": seed} for seed in drawn[1:]]}


def draw_weight(case: Layers, seed: int, layer: int) -> Tensor:
    """A layer's weight; every rank can draw it, and keeps a part."""
    gen = torch.Generator().manual_seed(seed + layer)
    out, width = case.shapes[layer]
    return torch.randn(out, width, generator=gen) / width**0.5


def draw_rows(case: Layers, rank_seed: int) -> tuple[Tensor, Tensor]:
    """A rank's input, and the gradient of its output."""
    gen = torch.Generator().manual_seed(rank_seed)
    x = torch.randn(N_ROWS, case.widths[0], generator=gen)
    return x, torch.randn(N_ROWS, case.widths[-1], generator=gen)


def rows_of(weight: Tensor, n_ranks: int) -> Tensor:
    """The weight in one row, filled up with zeros, as a row for each rank."""
    return F.pad(weight.flatten(), (0, -weight.numel() % n_ranks)).view(n_ranks, -1)


def some(tensor: Tensor | None, case: Layers) -> Tensor | None:
    """What comes back of a gradient."""
    if tensor is None:
        return None
    if max(a * b for a, b in case.shapes) < LARGE:
        return tensor.clone()
    return tensor.flatten()[torch.arange(0, tensor.numel(), SOME)]


def drive_unit(ans, case: Layers, tree: dict, stage) -> dict[str, Any]:
    """y, and the gradients of the input and of each shard; None where there is none."""
    warm_up("momentum")
    with stage.meter("memory"):
        shards = []
        for layer in range(len(case.shapes)):
            rows = rows_of(draw_weight(case, tree["seed"], layer), case.n_ranks)
            shards.append(rows[stage.rank].clone().to(stage.device).requires_grad_(layer not in case.frozen))
        del rows
        x, grad = (part.to(stage.device) for part in draw_rows(case, tree["mine"]["seed"]))
        x.requires_grad_()
        y = x
        for shard, (out, width) in zip(shards, case.shapes):
            y = ans.ShardedLinear.apply(y, shard, stage.comm, out, width)
        stage.mark(MOMENTS[0])
        y.backward(grad)
        stage.mark(MOMENTS[1])
    return {"y": y.detach(), "x": x.grad, "shards": [some(shard.grad, case) for shard in shards]}


FSDP_UNIT = Exercise(
    id="16-fsdp-unit",
    title="One layer: gather, use, free",
    points=4,
    minutes=25,
    difficulty=3,
    answers=(Answer("ShardedLinear"),),
    public=(
        Layers(),
        Layers(4, (6, 5, 3)),
        Layers(2, (4, 4, 6), frozen=(1,)),
        Layers(5, (2, 1)),
        Layers(3, (401, 700, 400, 5)),
        Layers(1, (3, 4)),
    ),
    inputs=seeds,
    drive=drive_unit,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
    meters=("memory",),
)
