"""Take from a running job what could carry work out of sight: no further process or thread, no files, no more CPU time.

Done by a fork of the forking process that has become the job's user, since lowering another user's limits takes a
right that even root may lack. What it set, the job cannot undo.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grading.worker.procfs import cpu_s as cpu_used_s
from grading.worker.procfs import gone_is_fine

CPU_GRACE_S = 2
_STOP_S = 5.0
_PAUSE_S = 0.0005


@dataclass(frozen=True)
class Seal:
    """What is left to the processes of a sealed job.

    cpu_s: CPU time that each still has. files: whether it may still write to files, where memory could hide.
    data_bytes, addresses_bytes: the most that it may have mapped, privately and in all. None sets no limit.
    """

    cpu_s: float | None = None
    files: bool = True
    data_bytes: int | None = None
    addresses_bytes: int | None = None


def apply(seal: Seal, job_processes: Callable[[], Sequence[int]]) -> None:
    """Lower the limits of the job's processes. Raises RuntimeError where they would not stand still."""
    pids = _stopped(job_processes)
    for pid in pids:
        _limit(pid, resource.RLIMIT_NPROC, 0, 0)
        if not seal.files:
            _limit(pid, resource.RLIMIT_FSIZE, 0, 0)
        if seal.cpu_s is not None:
            seconds = math.ceil(cpu_used_s(pid, with_children=False) + seal.cpu_s) + CPU_GRACE_S
            _limit(pid, resource.RLIMIT_CPU, seconds, seconds + 1)
        if seal.data_bytes is not None:
            _limit(pid, resource.RLIMIT_DATA, seal.data_bytes, seal.data_bytes)
        if seal.addresses_bytes is not None:
            _limit(pid, resource.RLIMIT_AS, seal.addresses_bytes, seal.addresses_bytes)
    for pid in pids:
        with gone_is_fine():
            os.kill(pid, signal.SIGCONT)


def _stopped(job_processes: Callable[[], Sequence[int]]) -> Sequence[int]:
    """The job's processes, all stopped, so that no fork is on its way that would have the old limits."""
    give_up_at = time.monotonic() + _STOP_S
    before: Sequence[int] | None = None
    while time.monotonic() < give_up_at:
        pids = job_processes()
        for pid in pids:
            with gone_is_fine():
                os.kill(pid, signal.SIGSTOP)
        if pids == before and all(map(_is_stopped, pids)):
            return pids
        before = pids
        time.sleep(_PAUSE_S)
    raise RuntimeError("the job's processes would not stand still")


def _is_stopped(pid: int) -> bool:
    """Whether every thread of it is stopped or dead."""
    with gone_is_fine():
        for task in os.listdir(f"/proc/{pid}/task"):
            with gone_is_fine(), open(f"/proc/{pid}/task/{task}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] not in "TtZX":
                    return False
    return True


def _limit(pid: int, kind: int, soft: int, hard: int) -> None:
    with gone_is_fine():
        _, most = resource.prlimit(pid, kind)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.prlimit(pid, kind, (soft, hard))
