"""What an all-reduce sends round by round, and what each rank has after each round, read from its own messages.

Each rank's tensor is filled so that a number in a message tells which ranks' numbers have been added up to it. The
function is run once on simulated ranks, on wires where a message takes one round. Nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.ranks import UNIT, Comm, Traffic, Work, measure_ranks

AllReduce = Callable[[Comm, Tensor], Tensor]
"""(comm, x) -> the sum of all ranks' x."""

Holding = dict[int, frozenset[int]]
"""By chunk, the ranks whose numbers are in its sum."""

INDEX_SHIFT = 20
"""A number of rank r at index i is 2**r + i * 2**INDEX_SHIFT: a sum of m of them has the bits of the m ranks below."""
MOST_RANKS = 16


@dataclass(frozen=True)
class Message:
    """What one rank sends another in a round (from 1 on)."""

    src: int
    dst: int
    round: int
    n_bytes: int
    holds: Holding


@dataclass(frozen=True)
class CollectiveSteps:
    """An all-reduce of n_bytes on each of n_ranks ranks, in n_chunks chunks that it sends separately (1: never cut).

    states[k][rank] is what the rank holds after round k; states[0] is the start.
    """

    n_ranks: int
    n_chunks: int
    n_bytes: int
    messages: tuple[Message, ...]
    states: tuple[tuple[Holding, ...], ...]
    traffic: Traffic

    @property
    def n_rounds(self) -> int:
        """Rounds until the last message has arrived."""
        return len(self.states) - 1


def trace_collective(all_reduce: AllReduce, n_ranks: int) -> CollectiveSteps:
    """Run `all_reduce` on n_ranks ranks, on a tensor with one element for each rank."""
    if not 1 <= n_ranks <= MOST_RANKS:
        raise ValueError(f"n_ranks is {n_ranks}: a picture can hold 1 to {MOST_RANKS} ranks")
    sent: dict[tuple[int, int], list[Holding]] = {}
    index = torch.arange(n_ranks) << INDEX_SHIFT

    def run(comm: Comm) -> None:
        all_reduce(_Noting(comm, sent), index + (1 << comm.rank))

    _, traffic = measure_ranks(run, n_ranks, cluster=UNIT)
    messages = []
    for one in traffic.transfers:
        # Messages of a link arrive in the order in which they were sent.
        notes = sent.get((one.src, one.dst), [])
        holds = notes.pop(0) if notes else {}
        messages.append(Message(one.src, one.dst, round(one.start_s) + 1, one.n_bytes, holds))
    n_bytes = 8 * n_ranks
    whole = all(message.n_bytes == n_bytes for message in messages)
    return CollectiveSteps(
        n_ranks, 1 if whole else n_ranks, n_bytes, tuple(messages), states_after(messages, n_ranks), traffic
    )


def states_after(messages: Sequence[Message], n_ranks: int) -> tuple[tuple[Holding, ...], ...]:
    """What each rank holds after each round. A message is added to it, or replaces it if it has all of that."""
    now: list[Holding] = [dict.fromkeys(range(n_ranks), frozenset({rank})) for rank in range(n_ranks)]
    states = [tuple(dict(holding) for holding in now)]
    for number in range(1, max((message.round for message in messages), default=0) + 1):
        for message in messages:
            if message.round == number:
                mine = now[message.dst]
                mine.update({chunk: ranks | mine[chunk] for chunk, ranks in message.holds.items()})
        states.append(tuple(dict(holding) for holding in now))
    return tuple(states)


def _holding(tensor: Tensor, n_ranks: int) -> Holding:
    """Which ranks' numbers are in each element of a message; elements that are no such sum are left out."""
    found: Holding = {}
    for value in tensor.detach().reshape(-1).tolist():
        ranks = frozenset(rank for rank in range(n_ranks) if int(value) >> rank & 1)
        chunk, rest = divmod(int(value) >> INDEX_SHIFT, max(len(ranks), 1))
        if ranks and not rest and 0 <= chunk < n_ranks:
            found[chunk] = ranks
    return found


class _Noting:
    """A communicator that writes down what is in each message, and is otherwise the one that it wraps."""

    def __init__(self, comm: Comm, sent: dict[tuple[int, int], list[Holding]]) -> None:
        self._comm, self._sent = comm, sent

    def __getattr__(self, name: str) -> object:
        return getattr(self._comm, name)

    def send(self, tensor: Tensor, dst: int) -> None:
        self._note(tensor, dst)
        self._comm.send(tensor, dst)

    def isend(self, tensor: Tensor, dst: int) -> Work:
        self._note(tensor, dst)
        return self._comm.isend(tensor, dst)

    def _note(self, tensor: Tensor, dst: int) -> None:
        self._sent.setdefault((self._comm.rank, int(dst)), []).append(_holding(tensor, self._comm.world_size))
