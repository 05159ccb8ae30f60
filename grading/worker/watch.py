"""What a job's processes take together, asked of /proc by somebody who is not one of them.

Memory that a process shares with the one it was forked from counts once. A limit per process would not stop a job that
makes many.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """The process ids of everything that `pid` and its children have started and that is still there."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def own_bytes(pid: int) -> int:
    """Memory of a process that is no file's, what it still shares with others included; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(("RssAnon:", "RssShmem:")))
    except OSError:
        return 0


def cpu_s(pid: int) -> float:
    """CPU time of a process and of the children that it has waited for; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0.0
    return sum(map(int, fields[11:15])) / _CLOCK_TICKS


def together_bytes(pids: Iterable[int], inherited_bytes: int, worth_a_look_bytes: int) -> int:
    """What these processes hold together. Exact, and slower, only from `worth_a_look_bytes` on.

    inherited_bytes: what each began with, as a fork of this process.
    """
    pids = list(pids)
    estimate = sum(max(own_bytes(pid) - inherited_bytes, 0) for pid in pids)
    if estimate < worth_a_look_bytes:
        return estimate
    return min(estimate, sum(map(_proportional_bytes, pids)))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    # A process may end, with or without its threads, while we look.
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


def _proportional_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return own_bytes(pid)
