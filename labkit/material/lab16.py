"""Lab 16: what its notebook runs on ranks beside the student's own code. Nothing is judged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.ranks import Comm

WIDTH = 61
"""A prime: it divides into no number of ranks."""


def small_model() -> nn.Sequential:
    """Three layers of 61 columns, 11,346 parameters."""
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)
    )


def batch_of(rank: int, step: int) -> tuple[Tensor, Tensor]:
    """A rank's rows in a step, and what the model should make of them."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, WIDTH, generator=generator)
    return x, x.roll(1, 1)


def copies_on_ranks(comm: Comm) -> dict[str, tuple[int, str]]:
    """By part, what this rank holds after three steps of data parallel training: its bytes, and a hash of its bits."""
    torch.manual_seed(0)
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        x, y = batch_of(comm.rank, step)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        for parameter in model.parameters():
            comm.all_reduce(parameter.grad, op="avg")
        optimizer.step()
    moments = [value for state in optimizer.state.values() for value in state.values() if value.dim()]
    return {
        "weights": _held(parameter.detach() for parameter in model.parameters()),
        "gradients": _held(parameter.grad for parameter in model.parameters()),
        "moments": _held(moments),
    }


def _held(tensors: Iterable[Tensor]) -> tuple[int, str]:
    parts = [tensor.contiguous().numpy().tobytes() for tensor in tensors]
    return sum(map(len, parts)), hashlib.sha256(b"".join(parts)).hexdigest()[:8]
