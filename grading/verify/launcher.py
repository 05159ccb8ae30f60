"""Run a command and keep account of all that it starts: `python -m grading.verify.launcher REPORT SECONDS COMMAND ...`.

Orphans become this process's children, so nothing that outlives the command is missed, and nothing of other people's
is taken for it. It ends everything when the machine itself is in danger. What the command does is not judged here.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

GONE_WITHIN_S = 20.0
"""A process of ours that has PyTorch loaded takes up to ten seconds to end on a machine with a load of eight."""
SAMPLE_S = 0.1
LEAST_FREE_BYTES = 2 * 2**30
MOST_PROCESSES = 5_000
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class CommandReport:
    """exit_code is None where the command had to be ended, and stopped_for says why.

    memory_bytes is how much less memory the machine had available at worst, other people's use included.
    """

    exit_code: int | None
    stopped_for: str | None
    wall_s: float
    most_processes: int
    memory_bytes: int
    survivors: tuple[str, ...]


def run_bounded(command: list[str], limit_s: float, gone_within_s: float = GONE_WITHIN_S) -> CommandReport:
    """Run the command to its end, then see what is still there after `gone_within_s`, and end that too."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    free_bytes = least_bytes = psutil.virtual_memory().available
    most, stopped_for = 0, None
    process = subprocess.Popen(command)
    while process.poll() is None:
        most = max(most, len(_descendants()))
        least_bytes = min(least_bytes, psutil.virtual_memory().available)
        if stopped_for := _danger(most, least_bytes, time.monotonic() - began, limit_s):
            _end_all()
            break
        time.sleep(SAMPLE_S)
    wall_s = time.monotonic() - began
    code = process.wait()
    until = time.monotonic() + (0 if stopped_for else gone_within_s)
    # All that is left of it is ours to wait for: where nothing is, nothing can come.
    while (left := _alive()) and time.monotonic() < until:
        time.sleep(SAMPLE_S)
    survivors = tuple(map(_described, left))
    _end_all()
    return CommandReport(None if stopped_for else code, stopped_for, wall_s, most, free_bytes - least_bytes, survivors)


def _danger(n_processes: int, free_bytes: int, wall_s: float, limit_s: float) -> str | None:
    if n_processes > MOST_PROCESSES:
        return f"{n_processes} processes"
    if free_bytes < LEAST_FREE_BYTES:
        return "the machine was nearly out of memory"
    return f"not done after {limit_s:g} s" if wall_s > limit_s else None


def _descendants() -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process().children(recursive=True)
    return []


def _alive() -> list[psutil.Process]:
    return [each for each in _descendants() if each.is_running() and not _is_dead(each)]


def _is_dead(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.name()} (uid {process.uids().effective}): {' '.join(process.cmdline())[:100]}"
    except psutil.Error:
        return "a process that cannot be looked at"


def _end_all() -> None:
    # More than once: what forks while it is being killed has children that the first look did not see.
    for _ in range(50):
        left = [each for each in _descendants() if not _is_dead(each)]
        if not left:
            return
        for each in left:
            with contextlib.suppress(psutil.Error):
                each.kill()
        time.sleep(0.02)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(asdict(run_bounded(sys.argv[3:], float(sys.argv[2])))))
