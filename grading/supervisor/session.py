"""One job and the talk with it: started, run cell by cell, sealed, given cases and probes, ended.

A job is one process or the ranks of an exercise, each on a channel of its own. What is sent when is drawn in
`grading.worker.protocol`. Which steps a job gets, and what is done where one breaks, is decided elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from grading.isolation.faults import InfrastructureFault, LostUnderStudent
from grading.isolation.sandbox import Sandbox
from grading.supervisor.witness import MemoryWitness, Reading, probe_readings
from grading.worker.protocol.control import JobEnded
from grading.worker.protocol.job import (
    At,
    Begins,
    CellEnded,
    Go,
    Probe,
    Probed,
    Ready,
    RunCase,
    StartJob,
    ThreadsAreRunning,
)
from grading.worker.protocol.steps import Step
from grading.worker.wire.frames import Channel
from grading.worker.wire.typed import WireError

START_S = 30.0
GRACE_S = 1.0
"""Wall time beyond the exercise's own, for what is not the answer's."""


class Session:
    """A job from its start to its end. witnesses: one for each channel, or none where nothing is measured.

    Every wait ends at a deadline, as of time.monotonic(), with TimeoutError, and with WireError where what came is not
    what was due.
    """

    def __init__(self, sandbox: Sandbox, channels: Sequence[Channel], witnesses: Sequence[MemoryWitness]) -> None:
        self.channels = channels
        self.witnesses = witnesses
        self._sandbox = sandbox
        self._has_begun = False

    @classmethod
    def open(cls, sandbox: Sandbox, grants: Sequence[str] = ()) -> Session:
        """A job of one process. Raises InfrastructureFault."""
        return cls(sandbox, [sandbox.open_job(grants)], [MemoryWitness(sandbox)])

    @classmethod
    def open_ranks(cls, sandbox: Sandbox, n: int, grants: Sequence[str], are_measured: bool) -> Session:
        """A job of n ranks. Raises InfrastructureFault."""
        channels = sandbox.open_ranks(n, grants)
        return cls(sandbox, channels, [MemoryWitness(sandbox, rank) for rank in range(n)] if are_measured else [])

    def begin(self, steps: Sequence[Step], fork: bool) -> None:
        """Hand over the steps and let them run. Raises InfrastructureFault: until then it is our own code that runs."""
        started_by = time.monotonic() + START_S
        try:
            for channel in self.channels:
                channel.post(StartJob(tuple(steps), fork), started_by)
            for channel in self.channels:
                channel.expect(Begins, started_by)
            for witness in self.witnesses:
                witness.take_baseline()
            for channel in self.channels:
                channel.post(Go(), started_by)
                self._has_begun = True
        except (TimeoutError, WireError) as error:
            words = self._sandbox.forking.last_words()
            raise InfrastructureFault(f"the worker ended before it ran anything: {words}") from error

    def cell(self, deadline: float) -> list[CellEnded]:
        """How the next cell ended, in every process."""
        ended = []
        for channel in self.channels:
            channel.expect(At, deadline)
            ended.append(channel.expect(CellEnded, deadline))
        return ended

    def ready(self, deadline: float) -> bool:
        """Wait until every process can take cases; False where one cannot for the threads that its cells left."""
        for channel in self.channels:
            channel.expect(At, deadline)
            if isinstance(channel.expect((Ready, ThreadsAreRunning), deadline), ThreadsAreRunning):
                return False
        return True

    def seal(self, cpu_s: float | None, files: bool, own_bytes: int | None = None) -> str | None:
        """Leave every process to itself alone; or why what one of them does could not be measured."""
        problems = (witness.seal(cpu_s, files, own_bytes) for witness in self.witnesses)
        return next((problem for problem in problems if problem), None)

    def case(self, parts: Sequence[RunCase], deadline: float) -> None:
        """Send a case: to each process its own part, to those beyond the last part nothing."""
        for channel, part in zip(self.channels, parts):
            channel.post(part, deadline)

    def probe(self, meter: str, n: int, deadline: float, rank: int = 0) -> list[Reading]:
        """Try a meter of one process on work of size n."""
        channel = self.channels[rank]
        channel.post(Probe(meter, n), deadline)
        return probe_readings(meter, n, channel.expect(Probed, deadline).measured)

    def look_at_waiting(self) -> None:
        """Note how long the job's processes have waited for a processor so far."""
        self._sandbox.look_at_waiting()

    def end(self) -> JobEnded:
        """End the job and all that it started. Raises InfrastructureFault."""
        for channel in self.channels:
            channel.close()
        try:
            return self._sandbox.kill_job()
        except InfrastructureFault as error:
            # The forking process was well before the student's code began; a second time is no accident.
            raise (LostUnderStudent(str(error)) if self._has_begun else error) from error
