"""When something that does one thing at a time is busy, and its first gap for the next thing. Whose seconds they are
and what is done in them is not known here.
"""

from __future__ import annotations

import bisect


class BusyTimes:
    """A list of busy times, in order and without overlap. All in seconds."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []

    def next_free(self, ready_s: float, duration_s: float) -> float:
        """The start of the first free time of this length that is not before `ready_s`."""
        at = bisect.bisect_right(self._ends, ready_s)
        start_s = ready_s
        while at < len(self._starts) and self._starts[at] < start_s + duration_s:
            start_s = max(start_s, self._ends[at])
            at += 1
        return start_s

    def take(self, start_s: float, duration_s: float) -> None:
        """Be busy in a time that is free."""
        at = bisect.bisect_right(self._ends, start_s)
        self._starts.insert(at, start_s)
        self._ends.insert(at, start_s + duration_s)

    def place(self, ready_s: float, duration_s: float) -> float:
        """Take the first free time; returns its start."""
        start_s = self.next_free(ready_s, duration_s)
        self.take(start_s, duration_s)
        return start_s
