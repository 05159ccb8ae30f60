"""Jobs on a forking process: open them one at a time, count what they wait, seal them, kill them.

Whether it is meant for one submission or for many is the tier's. How the process is started, spoken to and ended is
`forking`'s; what confines a job is made elsewhere (`plan`, `bwrap`, `grading.worker.confine`), and passed on here.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grading.isolation.faults import InfrastructureFault
from grading.isolation.forking import KILL_S, ForkingProcess
from grading.isolation.plan import plan_of
from grading.isolation.tiers import NONE
from grading.isolation.users import job_user, users_of_ranks
from grading.isolation.worker_tree import shared_worker_tree
from grading.worker.confine.plan import MOST_RANKS, PLAIN, RANK, Limits
from grading.worker.confine.tier import Tier
from grading.worker.procfs import children, descendants, waited_s
from grading.worker.protocol.control import JobEnded, JobPlace, JobSealed, JobStarted, Kill, SealJob, Start
from grading.worker.seal import Seal

if TYPE_CHECKING:
    from grading.worker.wire.frames import Channel

_PRIVATE = "/tmp/job-{n}"
"""The folder of the n-th job where it has temporary space of its own."""


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
        self._running = False
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
            self.forking = ForkingProcess(self.tier, plan, self.tree, self._home)
            made.callback(self.forking.end)
            self._user = job_user(self.forking.pid) if self.tier.isolates else None
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
            raise InfrastructureFault(f"the trial ended without a word: {self.forking.last_words()}")
        return json.loads(text)

    def wait(self) -> None:
        """Until jobs can be started; at once where that is so. Raises InfrastructureFault."""
        if self.forking.is_ready:
            return
        self.forking.wait_until_ready()
        if self.tier.in_bubblewrap:
            self._ours = frozenset(descendants(self.forking.pid))

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
            self.forking.send(start, [each.fileno() for each in theirs])
            self._running = True
            pid = self.forking.expect(JobStarted, KILL_S).pid
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
                self.forking.send(Kill())
            ended = self.forking.expect(JobEnded, KILL_S)
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
            return [pid for pid in descendants(self.forking.pid) if pid not in self._ours | self._waiting]
        firsts = children(self._leader)
        # One that is gone would give the others its place.
        return [firsts[rank], *descendants(firsts[rank])] if len(firsts) == self._n_places else []

    def look_at_waiting(self) -> None:
        """Add up how long the running job's processes waited for a processor, while they are there to be asked."""
        self._waited_s |= {pid: waited_s(pid) for pid in descendants(self.forking.pid) if pid not in self._ours}

    def seal_job(self, seal: Seal, rank: int = 0) -> str | None:
        """From here on the job, or this rank of it, starts no process or thread, and has no more than `seal` leaves it.

        Returns why it could not be done, or None. Raises InfrastructureFault where the forking process is gone.
        """
        with contextlib.suppress(OSError):
            self.forking.send(SealJob(seal, rank))
        return self.forking.expect(JobSealed, KILL_S).problem

    def close(self) -> None:
        """End the forking process with all that it forked. Closing again does nothing."""
        if self.forking.has_ended:
            return
        with self._made, contextlib.suppress(InfrastructureFault):
            self.kill_job()
