"""The communicator of some of the ranks: it goes through that of all ranks, with its own numbers.

Collectives say which ranks they are of. Messages are those of the communicator underneath, on the same links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from labkit.ranks.collectives import Group, Offer
from labkit.ranks.comm import Comm


class GroupComm(Comm):
    """Rank `ranks.index(whole.rank)` of the group. whole: the communicator of all ranks; ranks: ascending."""

    def __init__(self, whole: Comm, ranks: tuple[int, ...]) -> None:
        super().__init__(ranks.index(whole.rank), len(ranks), whole.device)
        self.global_rank = whole.rank
        self.ranks = ranks
        self._whole = whole

    @property
    def now_s(self) -> float:
        """This rank's virtual clock."""
        return self._whole.now_s

    def _group(self, ranks: tuple[int, ...]) -> Comm:
        return self._whole._group(tuple(self.ranks[rank] for rank in ranks))

    def _global(self, rank: int) -> int:
        return self.ranks[rank]

    def _start_send(self, tensor: torch.Tensor, dst: int) -> Callable[[], None]:
        return self._whole._start_send(tensor, self.ranks[dst])

    def _start_recv(self, tensor: torch.Tensor, src: int) -> Callable[[], None]:
        return self._whole._start_recv(tensor, self.ranks[src])

    def _barrier(self, group: Group) -> None:
        self._whole._barrier(self.ranks)

    def _mark(self, label: str, held_bytes: int | None) -> None:
        self._whole._mark(label, held_bytes)

    def _start_collective(self, offer: Offer) -> Callable[[], None]:
        return self._whole._start_collective(replace(offer, group=self.ranks))

    def _compute(self, seconds: float) -> None:
        self._whole._compute(seconds)
