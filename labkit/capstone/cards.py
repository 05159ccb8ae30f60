"""The cards of one machine, as threads that take turns, and what they hand one another while they train.

Nothing is counted here and nothing is kept: a training has thousands of meetings, and `run` knows what each costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from labkit.ranks.errors import CommError
from labkit.ranks.needs import Need
from labkit.ranks.scheduler import Scheduler

Made = TypeVar("Made")


@dataclass
class _Meeting:
    offers: dict[int, tuple[str, Tensor]] = field(default_factory=dict)
    results: list[Tensor] = field(default_factory=list)


class Card:
    """One card among `world_size`. Every call returns once all cards have made the same one."""

    def __init__(self, rank: int, world_size: int, meetings: dict[int, _Meeting], scheduler: Scheduler) -> None:
        self.rank, self.world_size = rank, world_size
        self._meetings, self._scheduler = meetings, scheduler
        self._met = 0

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over the cards, in their order."""
        return self._meet("all_reduce", tensor, lambda tensors: [_sum(tensors)] * self.world_size)

    def part_of_sum(self, tensor: Tensor) -> Tensor:
        """This card's part of the sum, along the first dimension."""
        return self._meet("reduce_scatter", tensor, lambda tensors: list(_sum(tensors).chunk(self.world_size)))

    def all_parts(self, part: Tensor) -> Tensor:
        """The cards' parts one after the other, along the first dimension."""
        return self._meet("all_gather", part, lambda parts: [torch.cat(parts)] * self.world_size)

    def under_way(self) -> list[Tensor]:
        """What was worked out at meetings that are not over."""
        return [tensor for meeting in self._meetings.values() for tensor in meeting.results]

    @torch.no_grad()
    def _meet(self, name: str, tensor: Tensor, work: Callable[[list[Tensor]], list[Tensor]]) -> Tensor:
        meeting = self._next_meeting()
        for other, (theirs, their_tensor) in meeting.offers.items():
            ours, there = _described(name, tensor), _described(theirs, their_tensor)
            if ours != there:
                raise CommError(f"card {self.rank} calls {ours} where card {other} calls {there}")
        meeting.offers[self.rank] = (name, tensor)
        if len(meeting.offers) == self.world_size:
            meeting.results = work([meeting.offers[rank][1] for rank in range(self.world_size)])
        for other in range(self.world_size):
            here = Need(lambda other=other: other in meeting.offers, other, f"in {name} for card {other}")
            self._scheduler.wait(self.rank, here)
        return meeting.results[self.rank]

    def _next_meeting(self) -> _Meeting:
        """One before the last is over: who has left the last one has seen everybody come to it."""
        self._met += 1
        self._meetings.pop(self._met - 2, None)
        return self._meetings.setdefault(self._met, _Meeting())


def on_cards(work: Callable[[Card], Made], world_size: int) -> list[Made]:
    """What work(card) returns for each. Raises CommError where calls do not fit together, RankFailed where one raises.

    Every card has random numbers of its own, which begin alike.
    """
    scheduler, meetings = Scheduler(world_size), {}
    made: list[Made | None] = [None] * world_size

    def body(rank: int) -> None:
        made[rank] = work(Card(rank, world_size, meetings, scheduler))

    scheduler.run(body)
    return made


def _sum(tensors: list[Tensor]) -> Tensor:
    total = tensors[0].clone()
    for tensor in tensors[1:]:
        total += tensor
    return total


def _described(name: str, tensor: Tensor) -> str:
    return f"{name} of {'×'.join(map(str, tensor.shape)) or '1'} in {str(tensor.dtype).removeprefix('torch.')}"
