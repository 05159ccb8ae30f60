"""Let the time limit of `labkit.limits` stand still while a worker waits for an answer of the supervisor's."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_timed() -> Iterator[None]:
    """Who waits for others is not the one who is slow; and no exception arrives in the middle of a frame."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        if left_s:
            signal.setitimer(signal.ITIMER_REAL, left_s, every_s)
