"""Lab 17: what a block costs with and without sequence parallelism, counted on simulated ranks. Nothing is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.meters import measure_memory
from labkit.ranks import Comm, measure_ranks

SEQUENCE, HIDDEN, FFN = 512, 256, 256


@dataclass(frozen=True)
class BlockCost:
    """Of one rank: the bytes that it sends in each pass, and those that it holds after the forward pass, less weights.

    BlockCost(sent_forward=786_432, sent_backward=786_432, held=2_883_584)
    """

    sent_forward: int
    sent_backward: int
    held: int

    @property
    def sent(self) -> int:
        return self.sent_forward + self.sent_backward


def block_costs(
    mlp: Callable[..., nn.Module], block: Callable[..., nn.Module], n_ranks: int = 4
) -> dict[str, BlockCost]:
    """Of x + MLP(norm(x)), with mlp as ParallelMLP and whole tensors around it, and with block as SequenceParallelMLP.

    512 tokens, 256 columns, as many hidden ones.
    """

    def whole_between(comm: Comm) -> nn.Module:
        return _Around(mlp(*_weights()[2:], comm))

    def cut_between(comm: Comm) -> nn.Module:
        return block(*_weights(), 0.0, 17, comm)

    return {
        "tensor parallel": _cost(whole_between, n_ranks, is_cut=False),
        "and sequence parallel": _cost(cut_between, n_ranks, is_cut=True),
    }


class _Around(nn.Module):
    """A norm and a residual connection around an MLP, of whole tensors."""

    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.mlp, self.norm = mlp, nn.LayerNorm(HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mlp(self.norm(x))


def _weights() -> tuple[Tensor, ...]:
    """Of a norm and an MLP."""
    shapes = ((HIDDEN,), (HIDDEN,), (FFN, HIDDEN), (FFN,), (HIDDEN, FFN), (HIDDEN,))
    return tuple(torch.full(shape, 0.01) for shape in shapes)


def _cost(build: Callable[[Comm], nn.Module], n_ranks: int, is_cut: bool) -> BlockCost:
    # PyTorch loads modules at its first norm and GELU; their memory is no rank's own.
    F.gelu(nn.LayerNorm(2)(torch.ones(1, 2))).sum().backward()

    def rank(comm: Comm) -> None:
        with measure_memory({}, {}):
            block = build(comm)
            comm.mark("built")
            x = torch.ones(SEQUENCE // n_ranks if is_cut else SEQUENCE, 1, HIDDEN, requires_grad=True)
            y = block(x)
            comm.mark("forward")
            y.sum().backward()
            comm.mark("backward")

    _, traffic = measure_ranks(rank, n_ranks)
    built, forward, backward = traffic.moments
    held = max(a - b for a, b in zip(forward.held_bytes, built.held_bytes, strict=True))
    sent = max(forward.bytes_sent)
    return BlockCost(sent, max(backward.bytes_sent) - sent, held)
