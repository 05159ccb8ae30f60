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
    return _HIGH + pid % _N_HIGH if _n_users() >= _HIGH + _N_HIGH else _LOW + pid % _N_LOW


def users_of_ranks(user: int | None, n: int) -> list[int | None]:
    """A user for each of n ranks, the job's own for the first; its own for all where there are not enough.

    Then they have nothing in common but what the kernel counts of a user, as processes.
    """
    if user is None or user < _HIGH or _n_users() < _HIGH + n * _N_HIGH:
        return [user] * n
    return [user + rank * _N_HIGH for rank in range(n)]


def _n_users() -> int:
    return sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())
