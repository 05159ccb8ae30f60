"""Lab 16: what is asked, given and run for a model of sharded units, with 16-bit communication and float32 masters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labkit.exercises.lab16.optimizers import make, shard_size, warm_up
from labkit.exercises.without_onednn import without_onednn
from labkit.spec import Answer, Case, Exercise, Run

LARGE = 2**16
"""From so many elements of a shard on, only some of it come back."""
SOME = 499
MOMENTS = ("between layers", "in the backward pass")
LATER = ("between layers, later", "in the backward pass, later")
"""The same from the second micro-batch on, when there are gradients or the optimizer's states as well."""
N_ROWS = 3


@dataclass(frozen=True)
class Units(Case):
    """Units one after the other, by kind: "plain", "tied" (its two layers share a weight), "frozen".

    param_dtype: in which weights are gathered and used; reduce_dtype: in which gradients are averaged.
    """

    n_ranks: int = 3
    kinds: tuple[str, ...] = ("plain", "plain", "plain")
    width: int = 5
    param_dtype: str = "float32"
    reduce_dtype: str = "float32"
    n_steps: int = 2
    n_micro: int = 1

    @property
    def dtypes(self) -> tuple[torch.dtype, torch.dtype]:
        return getattr(torch, self.param_dtype), getattr(torch, self.reduce_dtype)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of each unit."""
        return tuple(self.width**2 + self.width * (2 if kind == "tied" else 3) for kind in self.kinds)

    @property
    def shard_sizes(self) -> tuple[int, ...]:
        return tuple(shard_size(size, self.n_ranks) for size in self.sizes)


class Plain(nn.Module):
    """A norm and a linear layer, added to what comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.linear(self.norm(x)))


class Tied(nn.Module):
    """Two linear layers that share their weight and have a bias each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.second(torch.tanh(self.first(x))))


def make_unit(case: Units, seed: int, number: int) -> nn.Module:
    """One unit with weights that are drawn for it. Every rank can make it, and keeps a part."""
    kind = case.kinds[number]
    with torch.device("meta"):
        unit = Tied(case.width) if kind == "tied" else Plain(case.width)
    # Not .to_empty(): tied weights would part.
    gen = torch.Generator().manual_seed(seed + number)
    made: dict[int, nn.Parameter] = {}
    for module in unit.modules():
        for name, parameter in list(module._parameters.items()):
            if id(parameter) not in made:
                drawn = torch.randn(parameter.shape, generator=gen) / case.width**0.5
                made[id(parameter)] = nn.Parameter(drawn, requires_grad=kind != "frozen")
            module._parameters[name] = made[id(parameter)]
    return unit


def seeds(case: Units, gen: torch.Generator) -> dict[str, Any]:
    """One for the weights, and one for each rank's rows."""
    drawn = torch.randint(2**40, (1 + case.n_ranks,), generator=gen).tolist()
    return {"seed": drawn[0], "ranks": [{"seed": seed} for seed in drawn[1:]]}


def draw_rows(case: Units, rank_seed: int, step: int, micro: int) -> tuple[Tensor, Tensor]:
    """A rank's input, and what its output is multiplied by for the loss."""
    gen = torch.Generator().manual_seed(rank_seed + 1000 * step + micro)
    shape = (N_ROWS, case.width)
    return torch.randn(shape, generator=gen).to(case.dtypes[0]), torch.randn(shape, generator=gen)


def loss_of(out: Tensor, factor: Tensor, case: Units) -> Tensor:
    return (out * factor).sum() / case.n_micro


def some(tensor: Tensor, case: Units) -> Tensor:
    """What comes back of a shard."""
    if max(case.shard_sizes) < LARGE:
        return tensor.detach().clone()
    return tensor.detach().flatten()[torch.arange(0, tensor.numel(), SOME)]


def drive_fsdp(ans, case: Units, tree: dict, stage) -> dict[str, Any]:
    """start and shards: each unit's first parameter before and after the steps; of all its parameters [elements, dtype,
    whether it is trained]; out: the dtypes of what the last unit returned."""
    warm_up("momentum")
    with without_onednn(), stage.meter("memory"):
        units = [
            ans.Sharded(make_unit(case, tree["seed"], k), stage.comm, *case.dtypes) for k in range(len(case.kinds))
        ]
        found = [list(unit.parameters()) for unit in units]
        params = [[[p.numel(), str(p.dtype), p.requires_grad] for p in mine] for mine in found]
        start = [some(mine[0], case) if mine else None for mine in found]
        trained = [p for mine in found for p in mine if p.requires_grad]
        optimizer, out = make("momentum", trained) if trained else None, set()
        for step in range(case.n_steps):
            for micro in range(case.n_micro):
                rows = draw_rows(case, tree["mine"]["seed"], step, micro)
                out.add(_pass(case, units, rows, stage, LATER if step + micro else MOMENTS))
            if optimizer:
                optimizer.step()
                optimizer.zero_grad()
    shards = [some(mine[0], case) if mine else None for mine in found]
    return {"params": params, "start": start, "shards": shards, "out": sorted(out)}


def _pass(case: Units, units: list[nn.Module], rows: tuple[Tensor, Tensor], stage, moments: tuple[str, str]) -> str:
    """Forward and backward; the ranks halt between any two units, both ways. The dtype of the last unit's output."""
    x, factor = (part.to(stage.device) for part in rows)
    for unit in units:
        x = unit(x)
        stage.mark(moments[0])
        if x.requires_grad:
            x.register_hook(lambda _: stage.mark(moments[1]))
    loss_of(x, factor, case).backward()
    return str(x.dtype)


BF16 = {"param_dtype": "bfloat16"}

FSDP = Exercise(
    id="16-fsdp",
    title="A model of sharded units",
    points=5,
    minutes=35,
    difficulty=3,
    answers=(Answer("Sharded"),),
    public=(
        Units(),
        Units(4, ("plain", "tied", "plain"), 6),
        Units(2, ("frozen", "plain", "frozen", "plain"), 5, n_micro=2),
        Units(3, ("plain", "tied", "plain"), 6, **BF16),
        Units(3, ("plain", "plain", "tied"), 6, **BF16, reduce_dtype="bfloat16"),
        Units(3, ("plain", "tied", "plain", "frozen", "plain", "plain"), 601, **BF16),
        Units(1, ("plain", "tied"), 4),
    ),
    inputs=seeds,
    drive=drive_fsdp,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=40.0),
    meters=("memory",),
)
