"""Take from a running job what could carry work out of sight: no further process or thread, no files, no more CPU time.

Done by a fork of the forking process that has become the job's user, since lowering another user's limits takes a
right that even root may lack. What it set, the job cannot undo.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
from collections.abc import Callable, Iterator, Sequence

from grading.worker.watch import cpu_s as cpu_used_s

CPU_GRACE_S = 2
_MOST_LOOKS = 50


def seal(
    job_processes: Callable[[], Sequence[int]], n_tasks_beside: int | None, cpu_s: float | None, files: bool
) -> None:
    """Lower the limits of the job's processes. Raises RuntimeError where they would not stand still.

    n_tasks_beside: tasks of the same user's that are not the job's, None where tasks cannot be limited.
    cpu_s: CPU time that each process still has. files: whether it may still write to files, where memory could hide.
    """
    for pid in job_processes() if n_tasks_beside is None else _stand_still(job_processes, n_tasks_beside):
        if not files:
            _limit(pid, resource.RLIMIT_FSIZE, 0, 0)
        if cpu_s is not None:
            seconds = math.ceil(cpu_used_s(pid) + cpu_s) + CPU_GRACE_S
            _limit(pid, resource.RLIMIT_CPU, seconds, seconds + 1)


def _stand_still(job_processes: Callable[[], Sequence[int]], n_tasks_beside: int) -> Sequence[int]:
    """The job's processes, once no more can appear among them."""
    before: Sequence[int] = ()
    for _ in range(_MOST_LOOKS):
        pids = job_processes()
        n_tasks = sum(map(_n_tasks, pids)) + n_tasks_beside
        for pid in pids:
            _limit(pid, resource.RLIMIT_NPROC, n_tasks, n_tasks)
        if pids == before:
            return pids
        before = pids
    raise RuntimeError("the job's processes would not stand still")


@contextlib.contextmanager
def _gone_is_fine() -> Iterator[None]:
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        yield


def _limit(pid: int, kind: int, soft: int, hard: int) -> None:
    with _gone_is_fine():
        _, most = resource.prlimit(pid, kind)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.prlimit(pid, kind, (soft, hard))


def _n_tasks(pid: int) -> int:
    with _gone_is_fine():
        return len(os.listdir(f"/proc/{pid}/task"))
    return 0
