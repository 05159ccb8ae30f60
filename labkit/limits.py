"""Stop a block of the student's own process after so much wall or CPU time, with an exception at the stuck line.

Works through signals, so only in the main thread and only where the system has them; elsewhere the block simply
runs, and the student interrupts it. It is a courtesy, not a cage: the grader has limits of its own.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


class OverLimit(BaseException):
    """The block used up its time. A BaseException, so that `except Exception` in an answer does not swallow it."""

    def __init__(self, kind: str, limit_s: float) -> None:
        super().__init__(f"{limit_s:g} s of {kind} time")
        self.kind = kind
        self.limit_s = limit_s


@contextmanager
def time_limit(wall_s: float | None, cpu_s: float | None = None) -> Iterator[None]:
    """Raise OverLimit inside the block once `wall_s` seconds have passed, or `cpu_s` of CPU time were used; None is no
    limit.

    The limits of a block around this one hold in it, too. Any other timer is put off until the block has ended.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    timers = []
    if wall_s is not None:
        timers.append((_Raiser("wall", wall_s), signal.SIGALRM, signal.ITIMER_REAL, time.monotonic))
    if cpu_s is not None:
        timers.append((_Raiser("cpu", cpu_s), signal.SIGPROF, signal.ITIMER_PROF, time.process_time))
    found = []
    try:
        for raiser, number, timer, clock in timers:
            handler, (left_s, repeat_s) = signal.getsignal(number), signal.getitimer(timer)
            if isinstance(handler, _Raiser) and 0 < left_s <= raiser.limit_s:
                continue  # the limit around this one is due first
            found.append((number, handler, timer, clock, clock() + left_s if left_s else None, repeat_s))
            signal.signal(number, raiser)
            # Repeats, in case an answer swallows the first one.
            signal.setitimer(timer, raiser.limit_s, 0.5)
        yield
    finally:
        for number, handler, timer, *_ in found:
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
        for *_, timer, clock, due_s, repeat_s in found:
            if due_s is not None:
                # What is overdue goes off now; zero would stop it.
                signal.setitimer(timer, max(due_s - clock(), 1e-6), repeat_s)


@dataclass(frozen=True)
class _Raiser:
    """A handler of signals."""

    kind: str
    limit_s: float

    def __call__(self, number: int, frame: FrameType | None) -> None:
        raise OverLimit(self.kind, self.limit_s)
