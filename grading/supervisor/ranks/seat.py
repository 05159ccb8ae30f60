"""One rank as the router sees it: its channel, what it has started, and what it waits for.

What its calls mean is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from grading.worker.protocol.job import Observed
from grading.worker.protocol.ranks import CALLS
from grading.worker.wire.frames import Channel
from grading.worker.wire.typed import Frame, WireError, frame_of
from labkit.ranks.needs import Need
from labkit.spec import Tree, Trouble

LATE_S = 3.0
"""So long after its time what a rank has sent already still counts: this machine may have stood still."""


class RankTrouble(Exception):
    """A case ended without results, and why. blamed: the rank whose place in its code is named, if any."""

    def __init__(self, trouble: Trouble, blamed: int | None = None) -> None:
        super().__init__(trouble.text)
        self.trouble = trouble
        self.blamed = blamed


class Seat:
    """A rank: its channel, what it has started, and, while it waits for an answer, for what."""

    def __init__(self, rank: int, channel: Channel) -> None:
        self.rank = rank
        self.channel = channel
        self.under_way: dict[tuple[str, int | None, int], list[Need]] = {}
        self.needs: list[Need] = []
        self.finish: Callable[[], Tree] | None = None
        self.observed: Observed | None = None
        self.largest_bytes = 0

    def note(self, n_bytes: int) -> None:
        """A call of it handed over, or brought, this much."""
        self.largest_bytes = max(self.largest_bytes, n_bytes)

    @property
    def waits(self) -> bool:
        return self.finish is not None

    def started(self, what: str, other: int | None, number: Tree) -> list[Need]:
        """The needs of what it has started and not waited for yet. Raises WireError where there is no such thing."""
        if type(number) is not int or (needs := self.under_way.pop((what, other, number), None)) is None:
            raise WireError("a wait for what was not started")
        return list(needs)


def next_frame(channel: Channel, deadline: float) -> Frame:
    """Its next frame. Raises TimeoutError also where one after the other is there already and there is no end to it."""
    if time.monotonic() > deadline + LATE_S:
        raise TimeoutError
    return frame_of(*channel.receive(deadline), (*CALLS, Observed), "a call")


def ended(seat: Seat) -> RankTrouble:
    return RankTrouble(Trouble("died", f"the process of rank {seat.rank} ended"))
