"""Collectives as the network sees them: what each rank offers, whether the offers fit, what comes out, what is sent.

Results are computed once, in the order of the ranks, so that all ranks get the same bits. The messages that count are
those of the usual algorithms: rings, a binomial tree, and for all_to_all every message directly. They are planned here
and scheduled by the network. Ranks of a group are numbered within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from labkit.ranks.errors import CommError

OPS = ("sum", "avg", "product", "min", "max")
REDUCE = ("all_reduce", "reduce_scatter")
"""The collectives that have an `op`."""
COLLECTIVES = (*REDUCE, "broadcast", "all_gather", "all_to_all")

Group = tuple[int, ...] | None
"""The ranks of a group, ascending; None: all."""
Round = list[tuple[int, int, int]]
"""Messages that can go at the same time: (from, to, bytes)."""


@dataclass(frozen=True)
class Offer:
    """One rank's part of a collective: what it gives, and where the result goes. op and src where the call has one.

    group: the ranks that take part, ascending; all of them where it is None. src is a number within it.
    """

    name: str
    inputs: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]
    op: str | None = None
    src: int | None = None
    group: Group = None

    def as_it_is_now(self) -> Offer:
        """The same with copies of the inputs; of the outputs shape and dtype are kept."""
        inputs = tuple(tensor.detach().clone() for tensor in self.inputs)
        return replace(self, inputs=inputs, outputs=tuple(map(without_values, self.outputs)))


def op_name(op: Any, tensor: torch.Tensor, rank: int) -> str:
    """The word for a reduction given as a word or as a `torch.distributed.ReduceOp`.

    Raises CommError for one that is not offered, or that the tensor's dtype has not.
    """
    name = op.lower() if isinstance(op, str) else str(op).rpartition(".")[2].lower()
    if name not in OPS:
        raise CommError(f"rank {rank} asks to reduce by {op!r}: it must be one of {', '.join(OPS)}")
    if tensor.dtype == torch.bool or (name == "avg" and not (tensor.is_floating_point() or tensor.is_complex())):
        dtype = str(tensor.dtype).removeprefix("torch.")
        raise CommError(f"rank {rank} asks for the {name} of {dtype} tensors: convert them to a dtype that has one")
    return name


def check_fit(rank: int, offer: Offer, other: int, theirs: Offer, number: int) -> None:
    """Raise CommError if two ranks' parts of their collective with this number (from 0 on) cannot be one call."""
    which = f"collective number {number + 1}{of_group(offer.group)}"
    (low, first), (high, second) = sorted([(rank, offer), (other, theirs)], key=lambda pair: pair[0])
    if first.name != second.name:
        raise CommError(f"{which}: rank {low} calls {first.name}, rank {high} calls {second.name}")
    for what, a, b in (("op", first.op, second.op), ("src", first.src, second.src)):
        if a != b:
            raise CommError(f"{which}, {first.name}: rank {low} gives {what} {a}, rank {high} gives {what} {b}")
    if offer.name == "all_to_all":
        # Who sends how much to whom is known once all have come.
        return
    for mine, other_one in zip(first.inputs, second.inputs):
        if (mine.shape, mine.dtype) != (other_one.shape, other_one.dtype):
            raise CommError(f"{which}, {first.name}: rank {low} gives {form(mine)} and rank {high} {form(other_one)}")


def check_exchange(offers: Sequence[Offer], ranks: Sequence[int]) -> None:
    """Raise CommError where, in an all_to_all of these `ranks`, a tensor does not fit where it is to be received."""
    for sender, gives in zip(ranks, offers):
        for place, (receiver, takes) in enumerate(zip(ranks, offers)):
            sent, into = gives.inputs[place], takes.outputs[ranks.index(sender)]
            if (sent.shape, sent.dtype) != (into.shape, into.dtype):
                what = f"rank {sender} sends {form(sent)} to rank {receiver}"
                raise CommError(f"all_to_all: {what}, which receives it into {form(into)}")


def results(offers: Sequence[Offer]) -> list[tuple[torch.Tensor, ...]]:
    """What each rank gets, from the parts of all ranks in order."""
    first, everyone = offers[0], range(len(offers))
    if first.name == "all_reduce":
        total = _reduce([offer.inputs[0] for offer in offers], first.op)
        return [(total,) for _ in everyone]
    if first.name == "broadcast":
        return [offers[first.src].inputs for _ in everyone]
    if first.name == "all_gather":
        return [tuple(offer.inputs[0] for offer in offers) for _ in everyone]
    if first.name == "all_to_all":
        return [tuple(offer.inputs[rank] for offer in offers) for rank in everyone]
    return [(_reduce([offer.inputs[rank] for offer in offers], first.op),) for rank in everyone]


def plan(offers: Sequence[Offer]) -> list[Round]:
    """The messages of a collective, step by step.

    all_reduce: a ring of 2(n-1) steps, each rank sending its tensor twice less two chunks. reduce_scatter and
    all_gather: a ring of n-1 steps. broadcast: a binomial tree of ⌈log₂ n⌉ steps. all_to_all: one step, in which
    each rank sends to the next one, the one after that, and so on, what is not empty.
    """
    offer, world_size = offers[0], len(offers)
    if offer.name == "all_to_all":
        ends = [(r, (r + k) % world_size) for k in range(1, world_size) for r in range(world_size)]
        messages = [(src, dst, offers[src].inputs[dst].nbytes) for src, dst in ends]
        return [[message for message in messages if message[2]]]
    if offer.name == "broadcast":
        return _tree(world_size, offer.src, offer.inputs[0].nbytes)
    if offer.name == "all_gather":
        return _ring([offer.inputs[0].nbytes] * world_size, first=0)
    if offer.name == "reduce_scatter":
        # Rank r starts with the chunk before its own, so that its own comes to it last.
        return _ring([tensor.nbytes for tensor in offer.inputs], first=-1)
    size, item_bytes = offer.inputs[0].numel(), offer.inputs[0].element_size()
    chunks = [(size // world_size + (chunk < size % world_size)) * item_bytes for chunk in range(world_size)]
    return _ring(chunks, first=0) + _ring(chunks, first=1)


def _ring(chunk_bytes: Sequence[int], first: int) -> list[Round]:
    """In step k rank r sends chunk r + first - k to the next rank."""
    n = len(chunk_bytes)
    return [[(r, (r + 1) % n, chunk_bytes[(r + first - k) % n]) for r in range(n)] for k in range(n - 1)]


def _tree(n: int, root: int, n_bytes: int) -> list[Round]:
    steps, reached = [], 1
    while reached < n:
        pairs = [(v, v + reached) for v in range(reached) if v + reached < n]
        steps.append([((a + root) % n, (b + root) % n, n_bytes) for a, b in pairs])
        reached *= 2
    return steps


def _reduce(tensors: Sequence[torch.Tensor], op: str) -> torch.Tensor:
    total = tensors[0].clone()
    for tensor in tensors[1:]:
        if op in ("sum", "avg"):
            total += tensor
        elif op == "product":
            total *= tensor
        else:
            total = torch.minimum(total, tensor) if op == "min" else torch.maximum(total, tensor)
    return total / len(tensors) if op == "avg" else total


def without_values(tensor: torch.Tensor) -> torch.Tensor:
    """Shape and dtype, and no memory."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def of_group(group: Group) -> str:
    """How an error says whose collective it is: " of the group of ranks 0, 2"; nothing where it is everybody's."""
    return f" of the group of rank{'s' * (len(group) > 1)} {', '.join(map(str, group))}" if group else ""


def form(tensor: torch.Tensor) -> str:
    """ "float32 of shape (3,)"."""
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
