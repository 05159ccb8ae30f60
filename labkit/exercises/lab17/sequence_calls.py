"""Lab 17: collectives along the sequence with their gradients, for the run in which bugs are planted.

They are the usual pairs: the gradient of an all-gather is a reduce-scatter, and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labkit.ranks import Comm

Way = Callable[[Tensor], Tensor]


class ThereAndBack(torch.autograd.Function):
    """A call in the forward pass, and another one for the gradient."""

    @staticmethod
    def forward(ctx, x: Tensor, there: Way, back: Way) -> Tensor:
        ctx.back = back
        return there(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(grad), None, None


def gather(x: Tensor, comm: Comm, reduces: bool) -> Tensor:
    """All tokens from each rank's. reduces: whether the backward pass adds up the ranks' gradients; else each keeps its
    own tokens of its own."""

    def own_part(grad: Tensor) -> Tensor:
        return _scattered(grad, comm) if reduces else grad.chunk(comm.world_size)[comm.rank]

    return ThereAndBack.apply(x, lambda own: _gathered(own, comm), own_part)


def scatter(x: Tensor, comm: Comm) -> Tensor:
    """Of partial sums of all tokens, the sums of this rank's."""
    return ThereAndBack.apply(x, lambda partial: _scattered(partial, comm), lambda grad: _gathered(grad, comm))


def sum_over(x: Tensor, comm: Comm) -> Tensor:
    """The sum over the ranks, on every rank, each of which goes on to compute the same loss."""

    def summed(part: Tensor) -> Tensor:
        every = _gathered(part[None], comm)
        return every.sum(0)

    return ThereAndBack.apply(x, summed, lambda grad: grad)


def _gathered(x: Tensor, comm: Comm) -> Tensor:
    whole = x.new_empty(comm.world_size * len(x), *x.shape[1:])
    comm.all_gather_single(whole, x.contiguous())
    return whole


def _scattered(x: Tensor, comm: Comm) -> Tensor:
    own = x.new_empty(len(x) // comm.world_size, *x.shape[1:])
    comm.reduce_scatter_single(own, x.contiguous())
    return own
