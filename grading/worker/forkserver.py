"""The forking process: what a lab imports is loaded once here, and every job starts as a fork of it.

It holds no secrets and computes nothing but a rehearsal, in one thread, so a fork is cheap and safe. Commands come as
JSON datagrams on one descriptor, with the job's own channel attached; what it knows goes back the same way. Whatever a
job leaves behind is killed, and so is a job whose processes hold too much memory together.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable

from grading.worker import large_pages
from grading.worker.confine import system
from grading.worker.confine.namespaces import JobNamespaces, enter_namespaces
from grading.worker.confine.plan import MOST_RANKS, Plan, with_grants
from grading.worker.forked_job import fork_plainly, job_process
from grading.worker.preload import preload
from grading.worker.procfs import LOOK_S, Memory, children, cpu_s, descendants, memory_of, pause_s, together_bytes
from grading.worker.protocol.control import (
    COMMANDS,
    JobEnded,
    JobSealed,
    JobStarted,
    SealJob,
    ServerFailed,
    ServerReady,
    Start,
    from_datagram,
    to_datagram,
)
from grading.worker.seal import Seal, apply


def main(control_fd: int, plan_json: str, root: str) -> None:
    """Serve commands until the control channel closes. root: an empty folder, for a view of its own."""
    os.set_inheritable(control_fd, False)
    control = socket.socket(fileno=control_fd)
    plan = Plan.from_json(plan_json)
    _settle()
    try:
        if plan.tier.enters_namespaces:
            enter_namespaces(plan, root)
        preload(plan.preload)
    except Exception as error:
        control.send(to_datagram(ServerFailed(f"{type(error).__name__}: {error}")))
        return
    _Server(control, plan).serve()


def _settle() -> None:
    # Orphans of a job become our children, so that none of them outlives it unseen.
    system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    # Large pages would make memory look larger than what was asked for.
    system.prctl(system.PR_SET_THP_DISABLE, 1)
    # Ctrl-C is the supervisor's to handle; it closes the control channel when it wants us gone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # If the machine runs out of memory, it is a student's program that goes.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("800")


class _Server:
    """Starts jobs, one at a time, and ends them."""

    def __init__(self, control: socket.socket, plan: Plan) -> None:
        self._control = control
        self._plan = plan
        self._namespaces = JobNamespaces(plan)
        self._leader: int | None = None
        self._cpu_s, self._cpu_until_s = 0.0, math.inf
        self._users: list[int | None] = [None]
        self._over: str | None = None
        self._memory_bytes = plan.limits.memory_bytes
        self._inherited = Memory()
        self._look_again_at = 0.0

    def serve(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()
        if not self._plan.tier.sandbox_per_submission:
            # For a single submission it would take longer than it saves.
            large_pages.gather()
        self._inherited = memory_of(os.getpid())
        self._control.send(to_datagram(ServerReady()))
        while True:
            ready, _, _ = select.select([self._control, wake_read], [], [], LOOK_S if self._leader else None)
            if wake_read in ready:
                os.read(wake_read, 4096)
                self._reap()
            if self._control in ready and not self._obey():
                return
            if self._leader is not None and not self._over:
                self._look()

    def _look(self) -> None:
        """End a job that holds too much memory."""
        began = time.monotonic()
        if began < self._look_again_at:
            return
        held_bytes = together_bytes(descendants(os.getpid()), self._inherited, self._memory_bytes, self._networks())
        if held_bytes > self._memory_bytes:
            self._over = "memory"
            self._end()
        now = time.monotonic()
        self._look_again_at = now + pause_s(now - began, self._memory_bytes - held_bytes)

    def _networks(self) -> list[int]:
        """A process in each network that is the job's own."""
        if not self._plan.tier.isolates:
            return []
        return [self._leader] if len(self._users) == 1 else children(self._leader)

    def _obey(self) -> bool:
        """Carry out the next command; False when there will be none."""
        data, descriptors, _, _ = socket.recv_fds(self._control, 65536, MOST_RANKS)
        if not data:
            self._end()
            return False
        command = from_datagram(data, COMMANDS)
        if isinstance(command, Start):
            self._start(descriptors, command)
        elif isinstance(command, SealJob):
            self._control.send(to_datagram(JobSealed(self._seal(command.seal, command.rank))))
        else:
            self._end()
        return True

    def _seal(self, seal: Seal, rank: int) -> str | None:
        """Seal the running job or one of its ranks; what went wrong, or None."""
        server = os.getpid()
        ours = {self._leader} if self._plan.tier.isolates else set()

        def processes() -> list[int]:
            me = os.getpid()
            if len(self._users) == 1:
                return [pid for pid in descendants(server) if pid not in ours and pid != me]
            firsts = children(self._leader)
            if len(firsts) != len(self._users):
                # One that is gone would give the others its place.
                raise RuntimeError("a rank has ended")
            return [firsts[rank], *descendants(firsts[rank])]

        if seal.cpu_s is not None and len(self._users) == 1:
            self._cpu_until_s = sum(map(cpu_s, descendants(server))) + seal.cpu_s
        done = self._as_user(lambda: apply(seal, processes), rank)
        return None if done else "its limits could not be lowered"

    def _as_user(self, do: Callable[[], object], rank: int = 0) -> bool:
        """Whether it went well, in a fork that has become the user of the job, or of one of its ranks."""
        user = self._users[rank]
        pid = os.fork()
        if pid == 0:
            try:
                if user is not None:
                    os.setresgid(user, user, user)
                    os.setresuid(user, user, user)
                do()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        return status == 0

    def _start(self, channels: list[int], command: Start) -> None:
        """Start a job for each channel: one, or the ranks of an exercise, which count as one job and end together."""
        grants = command.grants
        limits = with_grants(self._plan.limits, grants)
        jobs = [
            job_process(channel_fd, place, command.trial, self._plan, grants)
            for channel_fd, place in zip(channels, command.places, strict=True)
        ]
        self._over = None
        self._cpu_s, self._cpu_until_s = 0.0, math.inf
        self._users = [place.uid for place in command.places]
        self._memory_bytes = limits.memory_bytes
        descriptors = (*channels, self._control.fileno())
        if not self._plan.tier.isolates:
            pid = fork_plainly(jobs, descriptors)
        elif len(jobs) == 1:
            pid = self._namespaces.fork(grants, descriptors, jobs[0])
        else:
            pid = self._namespaces.fork_ranks(grants, descriptors, jobs)
        for channel_fd in channels:
            os.close(channel_fd)
        self._leader = pid
        self._control.send(to_datagram(JobStarted(pid)))

    def _end(self) -> None:
        if self._leader is None:
            return
        self._cpu_s = sum(map(cpu_s, descendants(os.getpid())))
        if os.getpid() == 1:
            self._kill_strays()
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                kill(self._leader, signal.SIGKILL)

    def _reap(self) -> None:
        """Collect the dead; once the job's first process is among them, kill whatever else it has left."""
        while True:
            try:
                pid, _, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if pid == 0:
                return
            if pid == self._leader:
                self._leader = None
                self._clear()
                used_s = max(usage.ru_utime + usage.ru_stime, self._cpu_s)
                if used_s > self._cpu_until_s:
                    # The kernel has ended it, or was about to.
                    self._over = self._over or "cpu"
                self._control.send(to_datagram(JobEnded(self._over, used_s)))

    def _clear(self) -> None:
        """Kill what the job left until there is nothing, so that the next one begins alone."""
        with contextlib.suppress(ChildProcessError):
            while True:
                self._kill_strays()
                os.wait()

    def _kill_strays(self) -> None:
        if os.getpid() == 1:
            # Everybody else in here, in one step that no process can fork its way out of.
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            return
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
