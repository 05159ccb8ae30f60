"""A hold on a forking process: start it in its tier, open jobs on it one at a time, kill them, end it.

Whether it is meant for one submission or for many is the tier's. What confines a job is made elsewhere
(`plan`, `bwrap`, `grading.worker.confine`); this class passes the plan on.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grading.isolation.environment import environment
from grading.isolation.plan import plan_of
from grading.isolation.tiers import NONE, worker_command
from grading.isolation.users import job_user, users_of_ranks
from grading.isolation.worker_tree import python_command, shared_worker_tree
from grading.worker.confine.plan import MOST_RANKS, PLAIN, RANK, Limits, Plan
from grading.worker.confine.tier import Tier
from grading.worker.procfs import children, cpu_s, descendants, gone_is_fine, waited_s
from grading.worker.protocol.control import (
    EVENTS,
    JobEnded,
    JobPlace,
    JobSealed,
    JobStarted,
    Kill,
    SealJob,
    ServerFailed,
    ServerReady,
    Start,
    from_datagram,
    to_datagram,
)
from grading.worker.seal import Seal
from grading.worker.wire.typed import F

if TYPE_CHECKING:
    from grading.worker.wire.frames import Channel

START_CPU_S = 120.0
"""What a forking process may compute until it is ready. In wall time, on a crowded machine, that is many minutes."""
IDLE_S = 120.0
"""For how long it may do nothing at all until then."""
KILL_S = 10.0
_PRIVATE = "/tmp/job-{n}"
"""The folder of the n-th job where it has temporary space of its own."""


class InfrastructureFault(Exception):
    """Something of ours failed, not the student's: to be retried, and never a reason for zero points."""


class _Silent(InfrastructureFault):
    """The forking process did not say in time what it was to say."""


class LostUnderStudent(InfrastructureFault):
    """The forking process was lost after the student's code had begun to run."""


class Sandbox:
    """A forking process and at most one job on it. Use as a context manager.

    tree: the worker's files, where others than this process's are meant.
    preload: modules in place of the tier's own choice. limits: caps on its jobs. is_awaited: false where the caller has
    things to do while it loads; then its first job waits for it.
    """

    def __init__(
        self,
        tier: Tier = NONE,
        tree: Path | None = None,
        preload: tuple[str, ...] | None = None,
        limits: Limits = PLAIN,
        is_awaited: bool = True,
    ) -> None:
        self.tier = tier
        self._n_jobs = 0
        self._job_folder: Path | None = None
        self._ready, self._running = False, False
        self._leader, self._n_places = 0, 1
        self.waited_s = 0.0
        """How long all jobs so far stood in line for a processor, where they might have run."""
        self._waited_s: dict[int, float] = {}
        """The same of the running job's processes."""
        self._ours: frozenset[int] = frozenset()
        """A sandbox's own processes."""
        self._waiting: frozenset[int] = frozenset()
        """A job's first, where all that it does is wait for the job."""
        with contextlib.ExitStack() as made:
            self.tree = tree or shared_worker_tree()
            # Beside the worker's files, which go with the program that made them, however that ends.
            self._home = Path(tempfile.mkdtemp(prefix="sandbox-", dir=self.tree.parent))
            made.callback(shutil.rmtree, self._home, ignore_errors=True)
            plan = plan_of(self.tier, self.tree, preload, limits)
            self._errors = made.enter_context(open(self._home / "stderr", "w+b"))
            root = self._home / "root"
            root.mkdir()
            # Datagrams keep a command and the descriptor that goes with it together.
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.enter_context(self._control)
            with theirs:
                self._process = subprocess.Popen(
                    self._command(plan, theirs.fileno(), root),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    env=environment(Path("/tmp") if self.tier.isolates else self._home),
                    cwd=self._home,
                    pass_fds=(theirs.fileno(),),
                )
            made.callback(self._end_process)
            self._user = job_user(self._process.pid) if self.tier.isolates else None
            if is_awaited:
                self.wait()
            self._made = made.pop_all()
            """What `close` has to end and to remove."""

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def open_job(self, grants: Sequence[str] = ()) -> Channel:
        """Fork a fresh worker in an empty folder and return the channel to it. An earlier job is killed first.

        grants: what it may do beyond the plain profile (`Run.needs`). Raises InfrastructureFault.
        """
        from grading.worker.wire.frames import Channel  # torch, which a trial of a tier does without

        return Channel(*self._open(grants=list(grants)))

    def open_ranks(self, n: int, grants: Sequence[str] = ()) -> list[Channel]:
        """Fork n fresh workers that cannot reach one another and return the channels to them, in the ranks' order.

        Together they are one job, with one job's memory. Raises InfrastructureFault.
        """
        from grading.worker.wire.frames import Channel

        if not 1 <= n <= MOST_RANKS:
            raise InfrastructureFault(f"{n} ranks were asked for, and there may be 1 to {MOST_RANKS}")
        return list(map(Channel, self._open([*grants, RANK], n=n)))

    def run_trial(self, targets: dict) -> dict[str, str]:
        """What a job could do to `targets` that it should not, by name; see grading.worker.trial."""
        (ours,) = self._open(trial=targets)
        with ours, ours.makefile() as answer:
            ours.settimeout(KILL_S)
            text = answer.read()
        if not text:
            raise InfrastructureFault(f"the trial ended without a word: {self.last_words()}")
        return json.loads(text)

    def wait(self) -> None:
        """Until jobs can be started; at once where that is so. Raises InfrastructureFault.

        Not wall time is held against it, but that it computes without end, or does nothing.
        """
        if self._ready:
            return
        used_s, is_ready = 0.0, False
        while not is_ready:
            try:
                self._expect(ServerReady, IDLE_S)
                is_ready = True
            except _Silent:
                before_s, used_s = used_s, self._cpu_s()
                if not before_s < used_s < START_CPU_S:
                    raise
        if self.tier.in_bubblewrap:
            self._ours = frozenset(descendants(self._process.pid))
        self._ready = True

    def _cpu_s(self) -> float:
        """CPU time of the forking process, with what it runs while it loads, such as a compiler."""
        return sum(map(cpu_s, (self._process.pid, *descendants(self._process.pid))))

    def _open(self, grants: Sequence[str] = (), trial: dict | None = None, n: int = 1) -> list[socket.socket]:
        self.wait()
        self.kill_job()
        self._n_jobs += 1
        if not self.tier.isolates:
            self._job_folder = Path(tempfile.mkdtemp(prefix="job-", dir=self._home))
        folder = str(self._job_folder or _PRIVATE.format(n=self._n_jobs))
        places = [
            JobPlace(folder if self._job_folder is None or n == 1 else f"{folder}/{rank}", uid)
            for rank, uid in enumerate(users_of_ranks(self._user, n))
        ]
        start = Start(tuple(places), tuple(grants), trial)
        pairs = [socket.socketpair() for _ in range(n)]
        ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        try:
            socket.send_fds(self._control, [to_datagram(start)], [each.fileno() for each in theirs])
            self._running = True
            pid = self._expect(JobStarted, KILL_S).pid
        except (OSError, InfrastructureFault) as error:
            for each in ours:
                each.close()
            if isinstance(error, InfrastructureFault):
                raise
            raise InfrastructureFault(f"the forking process is gone: {error}") from error
        finally:
            for each in theirs:
                each.close()
        if self.tier.in_bubblewrap:
            # Inside of the sandbox it has another number.
            pid = next((pid for worker in self._ours for pid in children(worker) if pid not in self._ours), 0)
        self._waiting = frozenset({pid} if self.tier.isolates else ())
        self._leader, self._n_places = pid, n
        return ours

    def kill_job(self) -> JobEnded:
        """End the running job and everything it started, and remove its folder."""
        ended = JobEnded()
        if self._running:
            self.look_at_waiting()
            self.waited_s += sum(self._waited_s.values())
            self._waited_s = {}
            with contextlib.suppress(OSError):
                self._control.send(to_datagram(Kill()))
            ended = self._expect(JobEnded, KILL_S)
            self._running = False
        if self._job_folder is not None:
            shutil.rmtree(self._job_folder, ignore_errors=True)
            self._job_folder = None
        return ended

    def job_processes(self, rank: int = 0) -> list[int]:
        """The process ids, as seen from here, of everything that the running job consists of, or one rank of it.

        None of a rank's where one of the ranks has ended.
        """
        if self._n_places == 1:
            return [pid for pid in descendants(self._process.pid) if pid not in self._ours | self._waiting]
        firsts = children(self._leader)
        # One that is gone would give the others its place.
        return [firsts[rank], *descendants(firsts[rank])] if len(firsts) == self._n_places else []

    def look_at_waiting(self) -> None:
        """Add up how long the running job's processes waited for a processor, while they are there to be asked."""
        self._waited_s |= {pid: waited_s(pid) for pid in descendants(self._process.pid) if pid not in self._ours}

    def seal_job(self, seal: Seal, rank: int = 0) -> str | None:
        """From here on the job, or this rank of it, starts no process or thread, and has no more than `seal` leaves it.

        Returns why it could not be done, or None. Raises InfrastructureFault where the forking process is gone.
        """
        with contextlib.suppress(OSError):
            self._control.send(to_datagram(SealJob(seal, rank)))
        return self._expect(JobSealed, KILL_S).problem

    def close(self) -> None:
        """End the forking process with all that it forked. Closing again does nothing."""
        if self._control.fileno() < 0:
            return
        with self._made, contextlib.suppress(InfrastructureFault):
            self.kill_job()

    def _end_process(self) -> None:
        self._control.close()
        if self.tier.in_bubblewrap:
            self._end_bubblewrap()
        try:
            self._process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _end_bubblewrap(self) -> None:
        """Its first process, with which the sandbox goes, whatever is in there, and its second: while a sandbox is
        being made that one waits for the first, and would for ever.
        """
        self._process.send_signal(signal.SIGSTOP)
        # Stopped, it starts no more.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        for pid in children(self._process.pid):
            with gone_is_fine():
                os.kill(pid, signal.SIGKILL)
        self._process.kill()

    def _command(self, plan: Plan, control_fd: int, root: Path) -> list[str]:
        worker = python_command(self.tree, control_fd, plan, root)
        return worker_command(plan, worker, environment(Path("/tmp")))

    def _expect(self, due: type[F], within_s: float) -> F:
        """The next event of this type; others in between are of a job that is over."""
        deadline = time.monotonic() + within_s
        while True:
            self._control.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._control.recv(65536)
            except TimeoutError:
                raise _Silent(f'the forking process did not say "{due.kind}" in {within_s:g} s') from None
            except OSError as error:
                raise InfrastructureFault(f"the forking process is gone: {error}") from error
            if not data:
                raise InfrastructureFault(f"the forking process ended: {self.last_words()}")
            event = from_datagram(data, EVENTS)
            if isinstance(event, ServerFailed):
                raise InfrastructureFault(f"the forking process could not start: {event.reason}")
            if isinstance(event, due):
                return event

    def last_words(self) -> str:
        """The last line that the forking process or a job of it wrote as its error."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"
