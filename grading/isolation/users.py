"""A user of its own for every job, so that the kernel counts its processes alone and no other's files are its own."""

from __future__ import annotations

import os
from pathlib import Path

_HIGH, _LOW = 0x70000000, 20_000
"""First numbers of a range that no system hands out to anybody; the low one is for containers with few users."""
_N_HIGH, _N_LOW = 2**22, 40_000


def job_user(pid: int) -> int | None:
    """A user id for the jobs of the forking process `pid`, different from that of any other such process.

    None where this process is not root, and so has no user to give.
    """
    if os.geteuid() != 0:
        return None
    n_users = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return _HIGH + pid % _N_HIGH if n_users >= _HIGH + _N_HIGH else _LOW + pid % _N_LOW
