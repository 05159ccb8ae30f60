"""Bound the CPU time that the supervisor itself spends on one submission: on a verdict, and on the whole of it.

What a student's program may take is bounded elsewhere. But what it sends back is read, compared and explained here, and
may be made to take hours. CPU time is counted, not wall time, so a busy machine changes no verdict.

Python code is stopped by an exception, in a process's main thread. A call into compiled code, such as a regular
expression, does not come back to be stopped: in a process that was started for such work it ends the process.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from labkit.limits import OverLimit, time_limit

VERDICT_S = 20.0
"""For one verdict. The longest that a right or wrong answer of the course takes is 0.3 s."""
SUBMISSION_S = 120.0
"""For all of one submission: PyTorch is loaded and inputs are drawn as well, which takes some seconds."""
HARD_S = 150.0
"""For all of one submission, where nothing else stops it."""


class TookTooLong(Exception):
    """A submission took the supervisor more than SUBMISSION_S of CPU time. It would again: nobody needs to try."""


@contextmanager
def submission_limit() -> Iterator[None]:
    """For a block that deals with one submission. Raises TookTooLong."""
    try:
        with time_limit(wall_s=None, cpu_s=SUBMISSION_S):
            yield
    except OverLimit as error:
        raise TookTooLong(f"reading and judging what came back took more than {error}") from error


@contextmanager
def verdict_limit() -> Iterator[None]:
    """For a block that makes one verdict. Raises OverLimit."""
    with time_limit(wall_s=None, cpu_s=VERDICT_S):
        yield


@contextmanager
def process_limit(cpu_s: float = HARD_S) -> Iterator[None]:
    """End this process where the block takes so much of its time, whatever it is doing, and in whichever thread."""
    # Nobody handles this signal, so the kernel ends the process. Processes that are started meanwhile have no timer.
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
