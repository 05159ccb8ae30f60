"""Lab 18: a small language model in stages, whose first and last stage share the embedding, and what each keeps alive.

How the stages talk to one another is the exercise, so nothing of it is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

IGNORED = -100
"""A target that is no token, as cross_entropy has it."""


class Alive:
    """Counts the micro-batches whose activations autograd keeps: now, and the most at any time."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def watch(self, x: Tensor) -> Tensor:
        """x, as part of a graph that is counted until its backward pass is done or nobody has it any more."""
        with torch.autograd.graph.saved_tensors_hooks(lambda kept: _Kept(self, kept), lambda box: box.tensor):
            return _Watched.apply(x)


class _Kept:
    """A tensor that autograd has saved; it lets go of this with the graph."""

    def __init__(self, alive: Alive, tensor: Tensor) -> None:
        self.alive, self.tensor = alive, tensor
        alive.now += 1
        alive.most = max(alive.most, alive.now)

    def __del__(self) -> None:
        self.alive.now -= 1


class _Watched(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(torch.zeros(()))
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        ctx.saved_tensors  # noqa: B018  Autograd complains of a second backward pass only here.
        return grad


class Block(nn.Module):
    """A norm and two linear layers, added to what comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Stage(nn.Module):
    """Consecutive layers of the model. The first stage takes token ids, the last returns logits; in between are
    activations of shape (rows, length, width).

    tied_weight: the embedding, which is also the matrix of the logits. The first and the last stage have a copy each;
    None in between. A single stage is both, with one copy.
    """

    def __init__(self, n_layers: int, width: int, vocab: int, is_first: bool, is_last: bool) -> None:
        super().__init__()
        self.is_first, self.is_last = is_first, is_last
        self.tied_weight = nn.Parameter(torch.empty(vocab, width)) if is_first or is_last else None
        self.blocks = nn.ModuleList(Block(width) for _ in range(n_layers))
        self.norm = nn.LayerNorm(width) if is_last else None
        self.alive = Alive()

    def forward(self, x: Tensor) -> Tensor:
        x = self.alive.watch(F.embedding(x, self.tied_weight) if self.is_first else x)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tied_weight) if self.is_last else x


def warm_up() -> None:
    """A forward and a backward pass of single numbers: at the first gradient that it is given, PyTorch loads 32 MiB."""
    logits = make_stage((1,), 1, 1, seed=0, rank=0)(torch.zeros(1, 1, dtype=torch.long))
    logits.backward(torch.zeros_like(logits))


def make_stage(n_layers: Sequence[int], width: int, vocab: int, seed: int, rank: int) -> Stage:
    """The stage of this rank, of a model with so many layers by stage. The embedding is the same wherever it is."""
    last = len(n_layers) - 1
    stage = Stage(n_layers[rank], width, vocab, rank == 0, rank == last)
    own, shared = (torch.Generator().manual_seed(seed + k) for k in (1 + rank, 0))
    with torch.no_grad():
        for parameter in stage.parameters():
            is_tied = parameter is stage.tied_weight
            drawn = torch.randn(parameter.shape, generator=shared if is_tied else own)
            parameter.copy_(drawn / (1 if is_tied else width**0.5))
    return stage
