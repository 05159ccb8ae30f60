"""The last steps of a job before its first line of a student's: limits, another user, no capabilities, the filters.

What it gives up here it cannot get back. Where a tier does not isolate, only the limits are set.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence

from grading.worker.confine import landlock, seccomp, system
from grading.worker.confine.plan import Limits

LIBRARIES_BYTES = 3 * 2**30
"""Addresses that libraries and threads' stacks take without using memory."""


def set_limits(limits: Limits) -> None:
    """The caps that the kernel counts per process."""
    caps = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_AS: limits.memory_bytes + LIBRARIES_BYTES,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.n_descriptors,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        # Signals and timers that wait, in the kernel's memory.
        resource.RLIMIT_SIGPENDING: 4096,
        # Nobody runs before others.
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }
    for kind, cap in caps.items():
        _, most = resource.getrlimit(kind)
        cap = cap if most == resource.RLIM_INFINITY else min(cap, most)
        resource.setrlimit(kind, (cap, cap))


def surrender(uid: int | None, limits: Limits, grants: Sequence[str]) -> None:
    """Give up everything but reading, computing and the temporary space. Raises OSError where a step fails.

    uid: the user to become, None where there is only one to be.
    """
    resource.setrlimit(resource.RLIMIT_NPROC, (limits.n_tasks, limits.n_tasks))
    system.drop_bounding_set()
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    system.drop_capabilities()
    # A change of user takes a process its own entries under /proc; nobody else in there could read them.
    system.prctl(system.PR_SET_DUMPABLE, 1)
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict("loopback" in grants)
    seccomp.restrict(grants)
