"""A communicator with the names of torch.distributed between ranks simulated in one process, and what it counted.

Like there, `send` returns only once its receiver has asked for the message, and a tensor is received in place. Every
mistake is named in a CommError. There is no clock: bytes, messages and rounds are counted, seconds are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from labkit.ranks.turns import CommError, Need, Turns


@dataclass(frozen=True)
class Traffic:
    """What was sent: by each rank, and over each link (from, to).

    rounds is the longest chain of messages of which each could only be sent after the one before had arrived.
    """

    bytes_sent: tuple[int, ...]
    messages: tuple[int, ...]
    rounds: int
    link_bytes: Mapping[tuple[int, int], int]
    link_messages: Mapping[tuple[int, int], int]


def run_ranks(fn: Callable[[Comm], Any], world_size: int) -> list[Any]:
    """Call `fn(comm)` once for each of `world_size` ranks and return their results in order.

    Every rank starts with gradients on, and with the same random numbers as every other.
    """
    return simulate(fn, world_size)[0]


def simulate(fn: Callable[[Comm], Any], world_size: int) -> tuple[list[Any], Traffic]:
    """As `run_ranks`, and what the ranks sent one another."""
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}: there must be at least one rank")
    network = _Network(Turns(world_size), world_size)
    results: list[Any] = [None] * world_size

    def body(rank: int) -> None:
        results[rank] = fn(Comm(network, rank))

    network.turns.run(body)
    network.check_nothing_left()
    return results, network.traffic()


class Work:
    """A transfer under way; wait() returns when it is done."""

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish: Callable[[], None] | None = finish

    def wait(self) -> None:
        """Wait for the transfer: only then is a received tensor there."""
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()


class Comm:
    """One rank's end of the network."""

    def __init__(self, network: _Network, rank: int) -> None:
        self._network = network
        self.rank = rank
        self.world_size = network.world_size

    def send(self, tensor: torch.Tensor, dst: int) -> None:
        """Send `tensor` to rank `dst`, and wait until that rank receives it."""
        self.isend(tensor, dst).wait()

    def recv(self, tensor: torch.Tensor, src: int) -> None:
        """Wait for a message from rank `src` and write it into `tensor`."""
        self.irecv(tensor, src).wait()

    def isend(self, tensor: torch.Tensor, dst: int) -> Work:
        """Start to send `tensor`, as it is now, to rank `dst`."""
        link = self._link(tensor, "send", dst)
        number = link.send(tensor.detach().clone(), self._network.depth[self.rank] + 1)
        need = Need(lambda: link.n_posted > number, dst, f"for rank {dst} to receive")
        return Work(lambda: self._network.turns.wait(self.rank, need))

    def irecv(self, tensor: torch.Tensor, src: int) -> Work:
        """Start to receive a message from rank `src`; `tensor` holds it after wait()."""
        link = self._link(tensor, "receive", src)
        number = link.n_posted
        link.n_posted += 1
        need = Need(lambda: len(link.sent) > number, src, f"for a message from rank {src}")

        def finish() -> None:
            self._network.turns.wait(self.rank, need)
            message, depth = link.deliver(number)
            self._network.depth[self.rank] = max(self._network.depth[self.rank], depth)
            if (message.shape, message.dtype) != (tensor.shape, tensor.dtype):
                raise CommError(
                    f"rank {src} sends {_form(message)} and rank {self.rank} receives it into {_form(tensor)}"
                )
            tensor.detach().copy_(message)

        return Work(finish)

    def barrier(self) -> None:
        """Wait until every rank has come here as often as this one."""
        entered, depth = self._network.entered, self._network.depth
        number = len(entered[self.rank])
        entered[self.rank].append(depth[self.rank])
        for other, theirs in enumerate(entered):
            need = Need(lambda theirs=theirs: len(theirs) > number, other, f"at a barrier for rank {other}")
            self._network.turns.wait(self.rank, need)
        # Whatever is sent after a barrier depends on all that came before it.
        depth[self.rank] = max(theirs[number] for theirs in entered)

    def _link(self, tensor: object, verb: str, whom: int) -> _Link:
        self._network.turns.check()
        preposition = "to" if verb == "send" else "from"
        if not isinstance(tensor, torch.Tensor):
            raise CommError(f"rank {self.rank} wants to {verb} a {type(tensor).__name__}: it has to be a tensor")
        other = whom.__index__() if hasattr(whom, "__index__") else -1
        if not 0 <= other < self.world_size:
            last = self.world_size - 1
            ranks = f"the ranks are the whole numbers 0 to {last}" if last else "there is only rank 0"
            raise CommError(f"rank {self.rank} wants to {verb} {preposition} rank {whom}, but {ranks}")
        if other == self.rank:
            raise CommError(f"rank {self.rank} wants to {verb} {preposition} itself: a message needs two ranks")
        ends = (self.rank, other) if verb == "send" else (other, self.rank)
        return self._network.links.setdefault(ends, _Link())


class _Link:
    """All messages from one rank to another, in order: the n-th receive gets the n-th message."""

    def __init__(self) -> None:
        self.sent: list[tuple[torch.Tensor | None, int]] = []
        self.n_posted = 0
        self.n_delivered = 0
        self.n_bytes = 0

    def send(self, message: torch.Tensor, depth: int) -> int:
        self.sent.append((message, depth))
        self.n_bytes += message.nbytes
        return len(self.sent) - 1

    def deliver(self, number: int) -> tuple[torch.Tensor, int]:
        message, depth = self.sent[number]
        self.sent[number] = (None, depth)
        self.n_delivered += 1
        return message, depth


class _Network:
    """The links between the ranks, and how long the chain of messages up to each rank is, now and at its barriers."""

    def __init__(self, turns: Turns, world_size: int) -> None:
        self.turns = turns
        self.world_size = world_size
        self.links: dict[tuple[int, int], _Link] = {}
        self.depth = [0] * world_size
        self.entered: list[list[int]] = [[] for _ in range(world_size)]

    def check_nothing_left(self) -> None:
        for (src, dst), link in sorted(self.links.items()):
            left = len(link.sent) - link.n_posted
            if left > 0:
                what = "a message" if left == 1 else f"{left} messages"
                raise CommError(f"rank {src} sent {what} to rank {dst} that rank {dst} never received")
            if link.n_delivered < link.n_posted:
                raise CommError(f"rank {dst} started to receive from rank {src} and never called wait()")

    def traffic(self) -> Traffic:
        links = sorted(self.links.items())
        ranks = range(self.world_size)
        return Traffic(
            bytes_sent=tuple(sum(link.n_bytes for (src, _), link in links if src == rank) for rank in ranks),
            messages=tuple(sum(len(link.sent) for (src, _), link in links if src == rank) for rank in ranks),
            rounds=max((depth for _, link in links for _, depth in link.sent), default=0),
            link_bytes={ends: link.n_bytes for ends, link in links},
            link_messages={ends: len(link.sent) for ends, link in links},
        )


def _form(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
