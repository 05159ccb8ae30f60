"""Lab 17: what a loss over the vocabulary costs with the student's function. Nothing is judged."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labkit.ranks import Comm, measure_ranks


def loss_bytes_sent(loss: Callable[..., Tensor], n_ranks: int, n_tokens: int, columns: int = 64) -> int:
    """The bytes that the busiest rank sends in a loss and its backward pass, each rank with so many columns."""

    def rank(comm: Comm) -> None:
        gen = torch.Generator().manual_seed(comm.rank)
        logits = torch.randn(n_tokens, columns, generator=gen).requires_grad_()
        loss(comm, logits, torch.arange(n_tokens) % (n_ranks * columns), -100, 0.0).backward()

    return max(measure_ranks(rank, n_ranks)[1].bytes_sent)
