"""Lab 16: what is asked, given and run for the initialization of a model that no rank ever holds whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labkit.meters import measure_memory
from labkit.spec import Answer, Case, Exercise, Run

MOMENT = "initialized"
MOST_SEEN = 4096
"""Of more elements than this, sums of their bits come back and not the elements."""


@dataclass(frozen=True)
class Drawn(Case):
    """A model of n_layers square layers, initialized with this seed on n_ranks ranks."""

    n_ranks: int = 2
    n_layers: int = 2
    width: int = 6
    n_tokens: int = 5
    seed: int = 1


class Scale(nn.Module):
    """One factor for each column, which starts near 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the factors."""
        nn.init.normal_(self.factor, 1.0, 0.1)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class Layers(nn.Module):
    """Tokens in, logits out. Every module is built, and so draws its numbers, in the order of `modules()`.

    One parameter is the model's own, so that its name has no path.
    """

    def __init__(self, case: Drawn) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.empty(case.width))
        self.reset_parameters()
        self.embedding = nn.Embedding(case.n_tokens, case.width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(case.width), nn.Linear(case.width, case.width), Scale(case.width))
            for _ in range(case.n_layers)
        )
        self.head = nn.Linear(case.width, case.n_tokens, bias=False)

    def reset_parameters(self) -> None:
        """Draw what is added to every token."""
        nn.init.normal_(self.start, std=0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens) + self.start
        for block in self.blocks:
            h = h + torch.tanh(block(h))
        return self.head(h)


def part_size(n: int, n_ranks: int) -> int:
    """Elements of a shard, but for the last ones, which may be shorter or empty."""
    return -(-n // n_ranks)


def seen(shards: Mapping[str, Tensor]) -> dict[str, Any]:
    """The shards as they come back: themselves, or where they are large the sums of their bits."""
    if sum(shard.numel() for shard in shards.values()) <= MOST_SEEN:
        return dict(shards)
    return {name: [list(shard.shape), shard.view(torch.int32).sum().item()] for name, shard in shards.items()}


def _use_once() -> None:
    """What is imported when the meta device is first used is nobody's answer."""
    with torch.random.fork_rng(devices=[]), measure_memory({}), torch.device("meta"):
        model = Layers(Drawn(width=1, n_layers=1))
        for module in model.modules():
            module.to_empty(device="cpu", recurse=False)
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        model.to_empty(device="meta")


def drive_meta_init(ans, case: Drawn, tree: dict, stage) -> dict[str, Any]:
    """shards: by the parameter's name, this rank's part of it."""
    _use_once()
    with stage.meter("memory"):
        shards = ans.sharded_init(lambda: Layers(case), case.seed, stage.rank, stage.world_size)
        stage.mark(MOMENT)
    is_right_kind = isinstance(shards, dict) and all(isinstance(one, Tensor) for one in shards.values())
    return {"shards": seen(shards) if is_right_kind else shards}


META_INIT = Exercise(
    id="16-meta-init",
    title="A model that never exists whole",
    points=0.4,
    optional=True,
    minutes=25,
    difficulty=2,
    answers=(Answer("sharded_init"),),
    public=(
        Drawn(),
        Drawn(4, 3, 7, 3, seed=2),
        Drawn(5, 1, 3, 1, seed=3),
        Drawn(3, 6, 512, 40, seed=4),
        Drawn(1, 1, 4, 4, seed=5),
    ),
    inputs=lambda case, gen: {},
    drive=drive_meta_init,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=20.0),
    meters=("memory",),
)
