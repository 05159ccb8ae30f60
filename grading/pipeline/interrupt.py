"""Ctrl-C while a class is graded: the first ends the run in good order, the second ends it at once.

Only asked for here; what is in flight is finished by the one who asks `stop.is_set()`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A run was stopped in good order; the message says what is done and how to go on."""


@contextmanager
def stop_on_interrupt(say: Callable[[str], None], close: Callable[[], None]) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C (or SIGTERM) sets; the second ends this process then and there, after `close`."""
    stop = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            close()
            say("stopped at once: what was finished is kept")
            # Nothing is waited for: the pool's processes end with this one, and files are whole or not there.
            os._exit(INTERRUPTED)
        stop.set()
        say("stopping: running jobs are finished and saved first; Ctrl-C again stops at once")

    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set handlers; whoever runs this elsewhere has their own way of stopping.
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
