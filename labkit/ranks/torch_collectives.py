"""The collectives of torch.distributed, by the names that an `Offer` has for them: started, and read when done.

What is offered is copied first, so that its rank may go on with its tensors. Nobody waits here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from labkit.ranks.collectives import Offer
from labkit.tree import bytes_of

Started = tuple[dist.Work, Callable[[], Sequence[Tensor]]]
"""What to wait for, and what then reads the results, one for each of the offer's outputs."""


def start(offer: Offer, group: dist.ProcessGroup | None) -> Started:
    """Start a collective of this group's ranks."""
    inputs = [tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in offer.inputs]
    work, read = _STARTS[offer.name](offer, inputs, group)
    if offer.op != "avg":
        return work, read
    n_ranks = dist.get_world_size(group)
    return work, lambda: [total / n_ranks for total in read()]


def _all_reduce(offer: Offer, inputs: list[Tensor], group: dist.ProcessGroup | None) -> Started:
    return dist.all_reduce(inputs[0], _op(offer), group, async_op=True), lambda: inputs


def _broadcast(offer: Offer, inputs: list[Tensor], group: dist.ProcessGroup | None) -> Started:
    return dist.broadcast(inputs[0], group=group, async_op=True, group_src=offer.src), lambda: inputs


def _all_gather(offer: Offer, inputs: list[Tensor], group: dist.ProcessGroup | None) -> Started:
    parts = _places(offer)
    return dist.all_gather(parts, inputs[0], group, async_op=True), lambda: parts


def _reduce_scatter(offer: Offer, inputs: list[Tensor], group: dist.ProcessGroup | None) -> Started:
    (part,) = _places(offer)
    return dist.reduce_scatter(part, inputs, _op(offer), group, async_op=True), lambda: [part]


def _all_to_all(offer: Offer, inputs: list[Tensor], group: dist.ProcessGroup | None) -> Started:
    """As bytes in one piece, whose dtypes may differ: gloo's call with lists takes pieces of one size only."""
    sizes = [[tensor.nbytes for tensor in tensors] for tensors in (offer.outputs, inputs)]
    arrived = torch.empty(sum(sizes[0]), dtype=torch.uint8, device=inputs[0].device)
    sent = torch.cat(list(map(bytes_of, inputs)))

    def read() -> list[Tensor]:
        # Copies, since a piece may begin where no number of its dtype can.
        pieces = zip(offer.outputs, arrived.split(sizes[0]))
        return [piece.clone().view(like.dtype).reshape(like.shape) for like, piece in pieces]

    return dist.all_to_all_single(arrived, sent, *sizes, group, async_op=True), read


_STARTS: dict[str, Callable[[Offer, list[Tensor], dist.ProcessGroup | None], Started]] = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
}


def _places(offer: Offer) -> list[Tensor]:
    """New tensors like its outputs."""
    return [torch.empty_like(tensor.detach(), memory_format=torch.contiguous_format) for tensor in offer.outputs]


def _op(offer: Offer) -> dist.ReduceOp:
    # gloo has no average: the sum is divided afterwards, on both backends.
    return getattr(dist.ReduceOp, "SUM" if offer.op == "avg" else offer.op.upper())
