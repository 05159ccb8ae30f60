"""Lab 17: collectives along the sequence with their gradients, for the run in which bugs are planted.

They are the usual pairs: the gradient of an all-gather is a reduce-scatter, and the other way round.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.ranks import Comm


class Gather(torch.autograd.Function):
    """All tokens from each rank's. reduces: whether the backward pass adds up the ranks' gradients; else each keeps its
    own tokens of its own."""

    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm, reduces: bool) -> Tensor:
        ctx.comm, ctx.reduces = comm, reduces
        whole = x.new_empty(comm.world_size * len(x), *x.shape[1:])
        comm.all_gather_single(whole, x.contiguous())
        return whole

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        if not ctx.reduces:
            return grad.chunk(ctx.comm.world_size)[ctx.comm.rank], None, None
        return _scattered(grad, ctx.comm), None, None


class Scatter(torch.autograd.Function):
    """Of partial sums of all tokens, the sums of this rank's."""

    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return _scattered(x, comm)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        whole = grad.new_empty(ctx.comm.world_size * len(grad), *grad.shape[1:])
        ctx.comm.all_gather_single(whole, grad.contiguous())
        return whole, None


class SumOver(torch.autograd.Function):
    """The sum over the ranks, on every rank, each of which goes on to compute the same loss."""

    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm) -> Tensor:
        total = x.clone()
        comm.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def _scattered(x: Tensor, comm: Comm) -> Tensor:
    own = x.new_empty(len(x) // comm.world_size, *x.shape[1:])
    comm.reduce_scatter_single(own, x.contiguous())
    return own
