"""Stop a block of the student's own process after so much wall or CPU time, with an exception at the stuck line.

Works through signals, so only in the main thread and only where the system has them; elsewhere the block simply
runs, and the student interrupts it. It is a courtesy, not a cage: the grader has limits of its own.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OverLimit(BaseException):
    """The block used up its time. A BaseException, so that `except Exception` in an answer does not swallow it."""

    def __init__(self, kind: str, limit_s: float) -> None:
        super().__init__(f"{limit_s:g} s of {kind} time")
        self.kind = kind
        self.limit_s = limit_s


@contextmanager
def time_limit(wall_s: float, cpu_s: float | None = None) -> Iterator[None]:
    """Raise OverLimit inside the block once `wall_s` seconds have passed, or `cpu_s` of CPU time were used."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    timers = [("wall", wall_s, signal.SIGALRM, signal.ITIMER_REAL)]
    if cpu_s is not None:
        timers.append(("cpu", cpu_s, signal.SIGPROF, signal.ITIMER_PROF))
    handlers = {}
    try:
        for kind, limit_s, number, timer in timers:
            handlers[number] = signal.signal(number, _raiser(kind, limit_s))
            # Repeats, in case an answer swallows the first one.
            signal.setitimer(timer, limit_s, 0.5)
        yield
    finally:
        for _, _, number, timer in timers:
            signal.setitimer(timer, 0)
            if number in handlers:
                signal.signal(number, handlers[number])


def _raiser(kind: str, limit_s: float):
    def stop(number, frame):
        raise OverLimit(kind, limit_s)

    return stop
