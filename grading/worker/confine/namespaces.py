"""Namespaces: a set for the forking process where the tier has it enter them, and a fresh one for every job and every
rank.

The first process of a job is ours and does nothing but wait: when the job ends, or is ended, it goes, and the kernel
takes everything that still runs in its process namespace with it, whatever it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import traceback
from collections.abc import Callable, Sequence

from grading.worker.confine import system
from grading.worker.confine.plan import Plan, with_grants
from grading.worker.confine.view import enter_view, give_private_space

_CAP_SYS_ADMIN, _CAP_SETUID = 21, 7
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40


def is_privileged() -> bool:
    """Whether this process may make namespaces and change users without a user namespace."""
    return os.geteuid() == 0 and system.has_capability(_CAP_SYS_ADMIN) and system.has_capability(_CAP_SETUID)


def enter_namespaces(plan: Plan, root: str) -> None:
    """Move this process, which must have one thread, into namespaces of its own with the planned view of the files.

    Without privileges it becomes the only user of a user namespace first. Raises OSError.
    """
    flags = system.CLONE_NEWNS | system.CLONE_NEWNET | system.CLONE_NEWIPC | system.CLONE_NEWUTS
    if not is_privileged():
        uid, gid = os.geteuid(), os.getegid()
        system.unshare(system.CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    system.unshare(flags)
    socket.sethostname("grader")
    enter_view(root, plan.places)


class JobNamespaces:
    """Forks jobs into process namespaces of their own."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def fork(self, grants: Sequence[str], descriptors: Sequence[int], job: Callable[[], None]) -> int:
        """Fork a job's first process, which forks `job` and waits for it; returns the first one's process id.

        The first process closes these descriptors once the job has them.
        """
        # Not unshare: a process could come back from that only with rights over the machine's own namespace.
        pid = system.clone(system.CLONE_NEWPID)
        if pid == 0:
            try:
                os._exit(self._first(grants, descriptors, job))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        return pid

    def fork_ranks(self, grants: Sequence[str], descriptors: Sequence[int], jobs: Sequence[Callable[[], None]]) -> int:
        """Fork a process that forks every job into namespaces of its own, all of which end with it; its process id.

        Each job is the first process of its own, which saves a fork: it takes no processes of anybody's with it.
        """
        pid = system.clone(system.CLONE_NEWPID)
        if pid == 0:
            try:
                system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
                for job in jobs:
                    self._fork_rank(grants, job)
                for descriptor in descriptors:
                    os.close(descriptor)
                with contextlib.suppress(ChildProcessError):
                    while True:
                        os.wait()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        return pid

    def _fork_rank(self, grants: Sequence[str], job: Callable[[], None]) -> None:
        new = system.CLONE_NEWPID | system.CLONE_NEWNS | system.CLONE_NEWIPC | system.CLONE_NEWNET
        if system.clone(new) == 0:
            try:
                self._furnish(grants)
                job()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)

    def _first(self, grants: Sequence[str], descriptors: Sequence[int], job: Callable[[], None]) -> int:
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        system.unshare(system.CLONE_NEWNS | system.CLONE_NEWIPC | system.CLONE_NEWNET)
        self._furnish(grants)
        pid = os.fork()
        if pid == 0:
            try:
                job()
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        while True:
            ended, status = os.wait()
            if ended == pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code

    def _furnish(self, grants: Sequence[str]) -> None:
        give_private_space(with_grants(self._plan.limits, tuple(grants)), self._plan.places)
        if "loopback" in grants:
            _bring_loopback_up()


def _bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP | _IFF_RUNNING))
