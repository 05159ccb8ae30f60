"""The virtual clock that a driver hands to an answer: what costs time sleeps on it, and its threads come from it.

Its threads share this process and keep its books themselves: in grading, its seconds are a claim and no proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labkit.clock.things import Event, Queue, Thread
from labkit.clock.turns import Span, Turns


class VirtualClock:
    """`clock.Thread`, `clock.Queue` and `clock.Event` stand for those of `threading` and `queue`, `clock.sleep` for
    `time.sleep`. Time passes while a thread sleeps, and in no other way. The thread that makes the clock is the main
    one; a `with` block closes it at its end.

    spans: the sleeps that were given a name, in the order in which they began.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.queues: list[Queue] = []
        self._turns = Turns()

    @property
    def now_s(self) -> float:
        """Virtual seconds since the clock was made."""
        return self._turns.now_s

    def sleep(self, seconds: float, what: str = "") -> None:
        """Let virtual time pass for the calling thread, while others go on. what: a name for it in `spans`."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds is {seconds}: it must be a finite number of 0 or more")
        seat, start_s = self._turns.own_seat(), self.now_s
        if what:
            self.spans.append(Span(seat.name, what, start_s, start_s + seconds))
        self._turns.wait(lambda: False, start_s + seconds, "time to pass")

    def Thread(
        self,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        daemon: bool | None = None,
    ) -> Thread:
        """A thread that takes turns with the others: `clock.Thread(target=work, args=(3,))`."""
        return Thread(self._turns, target, name, args, kwargs, daemon)

    def Queue(self, maxsize: int = 0) -> Queue:
        """A queue of at most `maxsize` items, or of any number where that is 0."""
        self.queues.append(Queue(self._turns, maxsize))
        return self.queues[-1]

    def Event(self) -> Event:
        """An event, which is not set."""
        return Event(self._turns)

    def left_over(self, within_s: float = 0.0) -> list[str]:
        """The names of threads that do not end by themselves within so many virtual seconds."""

        def running() -> list[str]:
            return [seat.name for seat in self._turns.seats[1:] if not seat.ended]

        self._turns.wait(lambda: not running(), self.now_s + within_s, "the threads to end")
        return running()

    def failures(self) -> list[str]:
        """ "thread 'loader' has ended with ValueError: no", for each thread that has raised."""
        return self._turns.failures()

    def close(self) -> None:
        """End the threads that are left over. The clock cannot be used after it."""
        self._turns.close()

    def __enter__(self) -> VirtualClock:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
