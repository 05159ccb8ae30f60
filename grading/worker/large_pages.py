"""What the forking process has loaded, put into large pages: of one, a fork copies a single entry and not 512.

For a process that many jobs are forked from. A job has no new large pages of its own, which would make its memory look
larger than what it asked for; where it writes to one that it was born with, the kernel gives it an ordinary page. Where
the kernel cannot do this (before Linux 6.1), nothing changes.
"""

from __future__ import annotations

import contextlib

from grading.worker.confine import system

_LARGE_BYTES = 2 * 2**20


def gather() -> None:
    """Once everything is loaded."""
    with open("/proc/self/maps") as file:
        mappings = [line.split() for line in file]
    system.prctl(system.PR_SET_THP_DISABLE, 0)
    try:
        for addresses, rights, _, _, _, *name in mappings:
            if rights == "rw-p" and name in ([], ["[heap]"]):
                first, last = (int(address, 16) for address in addresses.split("-"))
                with contextlib.suppress(OSError):
                    _gather(first, last)
    finally:
        system.prctl(system.PR_SET_THP_DISABLE, 1)


def _gather(first: int, last: int) -> None:
    start, end = -(-first // _LARGE_BYTES) * _LARGE_BYTES, last // _LARGE_BYTES * _LARGE_BYTES
    if start < end:
        system.collapse(start, end - start)
