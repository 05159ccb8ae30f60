"""Lab 17: what is asked, given and run for attention whose heads are dealt to the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab17.layers import one_seed, run_layer
from labkit.spec import Answer, Case, Exercise, Run

NAMES = ("w_q", "w_k", "w_v", "w_o")


@dataclass(frozen=True)
class Heads(Case):
    """x of shape (*tokens, hidden), tokens being (batch, sequence). trains_input: x has a gradient."""

    n_ranks: int = 3
    n_heads: int = 6
    n_kv_heads: int = 3
    head_dim: int = 2
    hidden: int = 5
    tokens: tuple[int, int] = (2, 4)
    n_micro: int = 1
    trains_input: bool = True

    @property
    def n_replicas(self) -> int:
        """How many ranks hold the same key and value heads."""
        return max(self.n_ranks // self.n_kv_heads, 1)

    @property
    def kv_heads_of_rank(self) -> int:
        return max(self.n_kv_heads // self.n_ranks, 1)


def draw_weights(case: Heads, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The whole of them, as every rank is handed them."""
    gen = torch.Generator().manual_seed(seed)
    width, kv_width = case.n_heads * case.head_dim, case.n_kv_heads * case.head_dim
    shapes = ((width, case.hidden), (kv_width, case.hidden), (kv_width, case.hidden), (case.hidden, width))
    w_q, w_k, w_v, w_o = (torch.randn(shape, generator=gen) * (2 / shape[1]) ** 0.5 for shape in shapes)
    return w_q, w_k, w_v, w_o


def draw_micro_batches(case: Heads, seed: int) -> list[tuple[Tensor, Tensor]]:
    """x, and the gradient of y."""
    gen = torch.Generator().manual_seed(seed + 1)
    shape = (*case.tokens, case.hidden)
    return [(torch.randn(shape, generator=gen), torch.randn(shape, generator=gen)) for _ in range(case.n_micro)]


def drive_attention(ans, case: Heads, tree: dict, stage) -> dict[str, Any]:
    """What one rank has of it."""

    def build():
        weights = (one.to(stage.device) for one in draw_weights(case, tree["seed"]))
        return ans.ParallelAttention(*weights, case.n_heads, case.n_kv_heads, stage.comm)

    return run_layer(build, NAMES, draw_micro_batches(case, tree["seed"]), stage, case.trains_input)


TP_ATTENTION = Exercise(
    id="17-tp-attention",
    title="Attention, a few heads a rank",
    points=4,
    minutes=20,
    difficulty=3,
    answers=(Answer("ParallelAttention"),),
    public=(
        Heads(),
        Heads(3, 12, 6),
        Heads(4, 8, 2),
        Heads(6, 6, 2, n_micro=2),
        Heads(3, 3, 1, 4, 6, n_micro=2),
        Heads(3, 6, 6, 3, 4, trains_input=False),
        Heads(3, 6, 3, 100, 800, (1, 3)),
        Heads(1, 4, 2),
    ),
    inputs=one_seed,
    drive=drive_attention,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
    meters=("memory",),
)
