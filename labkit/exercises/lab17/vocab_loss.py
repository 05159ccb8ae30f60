"""Lab 17: what is asked, given and run for a cross-entropy whose logits are cut over the ranks by columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise, Run

LARGE = 2**16
"""From so many logits of a rank on, only some of their gradient comes back."""
SOME = 499


@dataclass(frozen=True)
class Logits(Case):
    """n_tokens rows of logits, `columns` of them on each rank. The last `padded` columns of all are -inf, and no token
    has them as its target. ignored: how many targets are ignore_index. scale: of the logits. dloss: what the loss is
    multiplied by before the backward pass.
    """

    n_ranks: int = 3
    n_tokens: int = 6
    columns: int = 8
    ignored: int = 0
    ignore_index: int = -100
    z_weight: float = 0.0
    padded: int = 0
    scale: float = 2.0
    dtype: str = "float32"
    dloss: float = 1.0

    @property
    def vocab(self) -> int:
        return self.n_ranks * self.columns

    @property
    def is_large(self) -> bool:
        return self.n_tokens * self.columns >= LARGE

    @property
    def own_bytes(self) -> int:
        """Of one rank's logits in float32."""
        return 4 * self.n_tokens * self.columns


def seeds(case: Logits, gen: torch.Generator) -> dict[str, Any]:
    """One for the targets, which all ranks have, and one for each rank's logits."""
    drawn = torch.randint(2**40, (1 + case.n_ranks,), generator=gen).tolist()
    return {"seed": drawn[0], "ranks": [{"seed": seed} for seed in drawn[1:]]}


def draw_targets(case: Logits, seed: int) -> Tensor:
    """Every rank has targets among its columns, as far as there are tokens, and no target is `ignore_index` but those
    that are to be."""
    gen = torch.Generator().manual_seed(seed)
    owners = torch.arange(case.n_tokens) % -(-(case.vocab - case.padded) // case.columns)
    targets = owners * case.columns + torch.randint(case.columns, (case.n_tokens,), generator=gen)
    targets = targets.clamp(max=case.vocab - case.padded - 1)
    targets[targets == case.ignore_index] += 1
    targets = targets[torch.randperm(case.n_tokens, generator=gen)]
    targets[case.n_tokens - case.ignored :] = case.ignore_index
    return targets


def draw_logits(case: Logits, rank_seed: int, rank: int) -> Tensor:
    """A rank's columns. Those of different ranks have different maxima, and no rank's mean is 0."""
    gen = torch.Generator().manual_seed(rank_seed)
    logits = torch.randn(case.n_tokens, case.columns, generator=gen) * case.scale + 0.5 * case.scale * (rank % 2)
    n_left = case.vocab - case.padded - rank * case.columns
    logits[:, max(n_left, 0) :] = float("-inf")
    return logits.to(getattr(torch, case.dtype))


def some(tensor: Tensor, case: Logits) -> Tensor:
    """What comes back of a gradient."""
    return tensor.flatten()[torch.arange(0, tensor.numel(), SOME)] if case.is_large else tensor


def drive_vocab_loss(ans, case: Logits, tree: dict, stage) -> dict[str, Any]:
    """loss, and grad: of the rank's own logits; None where there is none."""
    logits = draw_logits(case, tree["mine"]["seed"], stage.rank).to(stage.device).requires_grad_()
    targets = draw_targets(case, tree["seed"]).to(stage.device)
    with stage.meter("memory"):
        loss = ans.vocab_parallel_loss(stage.comm, logits, targets, case.ignore_index, case.z_weight)
        if loss.requires_grad:
            (loss * case.dloss).backward()
    grad = logits.grad
    return {"loss": loss.detach(), "grad": None if grad is None else some(grad, case)}


VOCAB_LOSS = Exercise(
    id="17-vocab-loss",
    title="A loss from a part of the vocabulary",
    points=4,
    minutes=30,
    difficulty=2,
    answers=(Answer("vocab_parallel_loss"),),
    public=(
        Logits(),
        Logits(4, 9, 8, ignored=2, dloss=3.0),
        Logits(3, 7, 9, ignored=3, ignore_index=11),
        Logits(3, 6, 8, scale=200.0),
        Logits(3, 8, 8, ignored=2, z_weight=0.2, dloss=0.5),
        Logits(4, 8, 8, padded=11),
        Logits(3, 8, 64, dtype="bfloat16", scale=4.0),
        Logits(6, 128, 512, ignored=5),
        Logits(1, 4, 9, ignored=1),
    ),
    inputs=seeds,
    drive=drive_vocab_loss,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=40.0),
    meters=("memory",),
    forbids=("torch.distributed.tensor.parallel.loss_parallel",),
)
