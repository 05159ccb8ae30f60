"""Lab 17: what is asked, given and run for an MLP whose two matrices are cut over the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab17.layers import one_seed, run_layer
from labkit.spec import Answer, Case, Exercise, Run

NAMES = ("w_in", "b_in", "w_out", "b_out")


@dataclass(frozen=True)
class MLP(Case):
    """x of shape (*tokens, hidden) becomes ffn columns and hidden again. trains_input: x has a gradient."""

    n_ranks: int = 3
    hidden: int = 4
    ffn: int = 6
    tokens: tuple[int, ...] = (2, 3)
    n_micro: int = 1
    trains_input: bool = True


def draw_weights(case: MLP, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The whole of them, as every rank is handed them."""
    gen = torch.Generator().manual_seed(seed)
    w_in = torch.randn(case.ffn, case.hidden, generator=gen) * (2 / case.hidden) ** 0.5
    b_in = torch.randn(case.ffn, generator=gen)
    w_out = torch.randn(case.hidden, case.ffn, generator=gen) * (2 / case.ffn) ** 0.5
    return w_in, b_in, w_out, 1 + torch.rand(case.hidden, generator=gen)


def draw_micro_batches(case: MLP, seed: int) -> list[tuple[Tensor, Tensor]]:
    """x, and the gradient of y."""
    gen = torch.Generator().manual_seed(seed + 1)
    shape = (*case.tokens, case.hidden)
    return [(torch.randn(shape, generator=gen), torch.randn(shape, generator=gen)) for _ in range(case.n_micro)]


def drive_mlp(ans, case: MLP, tree: dict, stage) -> dict[str, Any]:
    """What one rank has of it."""

    def build():
        return ans.ParallelMLP(*(one.to(stage.device) for one in draw_weights(case, tree["seed"])), stage.comm)

    return run_layer(build, NAMES, draw_micro_batches(case, tree["seed"]), stage, case.trains_input)


TP_MLP = Exercise(
    id="17-tp-mlp",
    title="An MLP in columns, then rows",
    points=5,
    minutes=25,
    difficulty=3,
    answers=(Answer("ParallelMLP"),),
    public=(
        MLP(),
        MLP(4, 6, 10),
        MLP(5, 3, 4, (4,)),
        MLP(3, 5, 7, n_micro=2),
        MLP(3, 4, 8, trains_input=False),
        MLP(3, 401, 1200, (3,)),
        MLP(1, 3, 5),
    ),
    inputs=one_seed,
    drive=drive_mlp,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=20.0),
    meters=("memory",),
)
