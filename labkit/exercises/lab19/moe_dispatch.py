"""Lab 19: what is asked, given and run for experts that lie on several ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab19.exchange import Exchange
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Mixture(Case):
    """n_tokens[r] tokens on rank r, n_local experts on each. favourite: all first choices are expert 0."""

    n_tokens: tuple[int, ...] = (5, 4, 6)
    n_local: int = 2
    k: int = 2
    width: int = 4
    favourite: bool = False

    @property
    def n_ranks(self) -> int:
        return len(self.n_tokens)

    @property
    def n_experts(self) -> int:
        return self.n_ranks * self.n_local


def mixture_inputs(case: Mixture, gen: torch.Generator) -> dict[str, Any]:
    """Of each rank: tokens x and d_out (n, width), chosen (n, k) with different experts, weights (n, k), and the
    matrices of its experts, (n_local, width, width)."""

    def rank(n: int) -> dict[str, Tensor]:
        chosen = torch.stack([torch.randperm(case.n_experts, generator=gen)[: case.k] for _ in range(n)])
        if case.favourite:
            chosen[:, 1:] = torch.where(chosen[:, 1:] == 0, chosen[:, :1], chosen[:, 1:])
            chosen[:, 0] = 0
        return {
            "x": torch.randn(n, case.width, generator=gen),
            "d_out": torch.randn(n, case.width, generator=gen),
            "chosen": chosen,
            "weights": torch.rand(n, case.k, generator=gen) + 0.1,
            "matrices": torch.randn(case.n_local, case.width, case.width, generator=gen),
        }

    return {"ranks": [rank(n) for n in case.n_tokens]}


def drive_mixture(ans, case: Mixture, tree: dict, stage) -> dict[str, Any]:
    """out, the gradients of tokens, weights and the rank's matrices, and how many rows each expert was given."""
    mine = tree["mine"]
    x, weights, matrices = (
        mine[name].clone().to(stage.device).requires_grad_() for name in ("x", "weights", "matrices")
    )
    rows = [0] * case.n_local

    def run_expert(expert: int, some: Tensor) -> Tensor:
        rows[expert] += len(some)
        return torch.tanh(some @ matrices[expert])

    exchange = Exchange(stage.comm)
    chosen = mine["chosen"].clone().to(stage.device)
    out = ans.moe_layer(stage.comm, exchange, x, chosen, weights, run_expert, case.n_local)
    if isinstance(out, Tensor) and out.shape == mine["d_out"].shape and out.requires_grad:
        (out * mine["d_out"].to(stage.device)).sum().backward()
    return {
        "out": out.detach() if isinstance(out, Tensor) else out,
        "d_x": x.grad,
        "d_weights": weights.grad,
        "d_matrices": torch.zeros_like(matrices) if matrices.grad is None else matrices.grad,
        "rows": rows,
    }


MOE_DISPATCH = Exercise(
    id="19-moe-dispatch",
    title="Send tokens to their experts and back",
    points=5,
    minutes=45,
    difficulty=3,
    answers=(Answer("moe_layer"),),
    public=(
        Mixture(),
        Mixture((3, 7), n_local=3, k=1),
        Mixture((6, 2, 5, 4), n_local=1, k=3),
        Mixture((5, 6, 4), favourite=True),
        Mixture((8,), n_local=4, k=2),
    ),
    inputs=mixture_inputs,
    drive=drive_mixture,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=20.0),
)
