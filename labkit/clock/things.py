"""What threads share on a virtual clock: `Thread`, `Queue` and `Event`, with the names and errors of Python's own.

Of Python's classes they have what a prefetcher needs: no locks, no conditions, no `Queue.join`. Timeouts are in virtual
seconds.
"""

from __future__ import annotations

import math
import queue
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labkit.clock.turns import Seat, Turns


class Thread:
    """As `threading.Thread`. A thread that raises ends, and tells nobody, as a real one does."""

    def __init__(
        self,
        turns: Turns,
        target: Callable[..., object] | None,
        name: str | None,
        args: Iterable[Any],
        kwargs: Mapping[str, Any] | None,
        daemon: bool | None,
    ) -> None:
        self._turns = turns
        self._target = target
        self._args, self._kwargs = tuple(args), dict(kwargs or {})
        self._seat: Seat | None = None
        self.name = name or getattr(target, "__name__", "thread")
        self.daemon = bool(daemon)

    def start(self) -> None:
        """Begin; it has its first turn as soon as the caller waits for something."""
        if self._seat is not None:
            raise RuntimeError("threads can only be started once")
        self._seat = self._turns.begin(self.name, self.run)

    def run(self) -> None:
        """What the thread does: call its target."""
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, or until so many virtual seconds have passed."""
        if self._seat is None:
            raise RuntimeError("cannot join thread before it is started")
        seat = self._seat
        if seat is self._turns.own_seat():
            raise RuntimeError("cannot join current thread")
        self._turns.wait(lambda: seat.ended, _until_s(self._turns, timeout), f"thread {self.name!r} to end")

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        return self._seat is not None and not self._seat.ended


class Queue:
    """As `queue.Queue`: the errors are `queue.Full` and `queue.Empty`. most: the most items it has ever held."""

    def __init__(self, turns: Turns, maxsize: int) -> None:
        self._turns = turns
        self._items: deque[Any] = deque()
        self.maxsize = maxsize
        self.most = 0

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:
        """Wait for room, then add the item."""
        if not self._waited(lambda: not self.full(), block, timeout, f"room in a full queue of {self.maxsize}"):
            raise queue.Full
        self._items.append(item)
        self.most = max(self.most, len(self._items))

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Wait for an item, then take the oldest one."""
        if not self._waited(lambda: not self.empty(), block, timeout, "an item of an empty queue"):
            raise queue.Empty
        return self._items.popleft()

    def put_nowait(self, item: object) -> None:
        self.put(item, block=False)

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def qsize(self) -> int:
        return len(self._items)

    def empty(self) -> bool:
        return not self._items

    def full(self) -> bool:
        return 0 < self.maxsize <= len(self._items)

    def _waited(self, is_met: Callable[[], bool], block: bool, timeout: float | None, waits_for: str) -> bool:
        if block:
            return self._turns.wait(is_met, _until_s(self._turns, timeout), waits_for)
        self._turns.own_seat()
        return is_met()


class Event:
    """As `threading.Event`."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, or until so many virtual seconds have passed; whether it is set."""
        return self._turns.wait(self.is_set, _until_s(self._turns, timeout), "an event to be set")


def _until_s(turns: Turns, timeout: float | None) -> float:
    if timeout is None:
        return math.inf
    if timeout < 0:
        raise ValueError("'timeout' must be a non-negative number")
    return turns.now_s + timeout
