"""Run an exercise with a store: of each case one job after the other, all on the same files.

Every job is a process of its own that runs the cells first, in a box where nothing of the job before is left. Where one
is killed is known here and nowhere else. What the runs are worth is judged elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from grading.isolation.sandbox import Sandbox
from grading.supervisor.attempts import NO_MORE_CASES
from grading.supervisor.cases import UNMEASURED, CaseInputs, CaseSet
from grading.supervisor.limits import CELL_LIMITS, CellLimits, granted, over_limit
from grading.supervisor.session import GRACE_S, Session
from grading.supervisor.store.port import StorePort, TooManyCalls
from grading.supervisor.transcript import RunsApart
from grading.worker.protocol.job import Observed, RunCase
from grading.worker.protocol.steps import Step
from grading.worker.protocol.trees import case_to_tree, clean
from grading.worker.wire.frames import Closed
from labkit.measures import held_of_ranks, of_ranks
from labkit.spec import Exercise, Observation, Trouble
from labkit.store import StoreFull, books_of, part_of_job


def run_with_store(
    sandbox: Sandbox, steps: Sequence[Step], exercise: Exercise, cases: CaseSet, limits: CellLimits = CELL_LIMITS
) -> RunsApart:
    """steps: the cells that each job runs first, and the exercise as the last one.

    CPU time is limited for each job by itself. Raises ValueError for an exercise with a budget on memory or on what a
    probe bears out, and InfrastructureFault when the trouble is ours.
    """
    if cases.bounds_memory or cases.probes:
        raise ValueError(f"{exercise.id}: with a store neither memory nor what a probe bears out can have a budget")
    jobs = _Jobs(sandbox, steps, exercise, cases, limits)
    for inputs in cases.inputs:
        run = jobs.run(inputs)
        jobs.found.runs.append(run)
        if run.trouble and run.trouble.kind in NO_MORE_CASES:
            break
    return jobs.found


class _Stop(Exception):
    """A job came to no result, and why."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.text)
        self.trouble = trouble


class _Jobs:
    """The jobs of one exercise, which share its time."""

    def __init__(
        self, sandbox: Sandbox, steps: Sequence[Step], exercise: Exercise, cases: CaseSet, limits: CellLimits
    ) -> None:
        self.found = RunsApart()
        self._sandbox = sandbox
        self._steps = steps
        self._exercise = exercise
        self._cases = cases
        self._limits = limits
        self._left_s = exercise.run.wall_s + GRACE_S
        self._ends_at = time.monotonic() + limits.submission_s

    def run(self, inputs: CaseInputs) -> Observation:
        """What came of a case's jobs."""
        books = books_of(inputs.tree)
        port = StorePort(books)
        part = part_of_job(inputs.tree)
        frames: list[Observed | None] = []
        for _ in range(books.n_jobs):
            case = RunCase(case_to_tree(inputs.case), part, lend=False, job=books.begin_job())
            try:
                frame = self._job(case, port)
            except _Stop as error:
                return inputs.without_run(error.trouble)
            if frame is not None and frame.trouble:
                return inputs.without_run(frame.trouble)
            frames.append(frame)
        ended = [frame for frame in frames if frame]
        measured = of_ranks(frame.measured for frame in ended) | books.figures()
        held = held_of_ranks([(frame.measured, frame.held) for frame in ended])
        got = [frame and frame.got for frame in frames]
        back = [frame and frame.back_of(part, lent=False) for frame in frames]
        record = books.record()
        return Observation(inputs.case, inputs.tree, {"jobs": got}, {"jobs": back}, measured, held=held, books=record)

    def _job(self, case: RunCase, port: StorePort) -> Observed | None:
        """What came of one job, None where it was killed. Raises _Stop, InfrastructureFault."""
        grants = granted(self._exercise, self._cases)
        session = Session.open(self._sandbox, grants)
        trouble = None
        try:
            session.begin(self._steps, fork=False)
            return self._talk(session, case, port)
        except _Stop as error:
            trouble = error.trouble
        finally:
            ended = session.end()
            self.found.cpu_s += ended.cpu_s
        if ended.over and trouble.kind == "died":
            trouble = over_limit(ended.over, grants)
        raise _Stop(trouble)

    def _talk(self, session: Session, case: RunCase, port: StorePort) -> Observed | None:
        try:
            for _ in self._steps[:-1]:
                session.cell(min(time.monotonic() + self._limits.one_s, self._ends_at))
            is_ready = session.ready(min(time.monotonic() + self._left_s, self._ends_at))
        except TimeoutError as error:
            raise _Stop(Trouble("wall", "the cells before it took too long in a job of its own")) from error
        except Exception as error:
            # Whatever a cell did to its process: it went well the first time, or it would not be here again.
            text = f"a cell before it did not end well in a job of its own ({_words(error)})"
            raise _Stop(Trouble("cell", text)) from error
        if not is_ready:
            raise _Stop(Trouble("died", "it would not be forked, and need not be"))
        if self._cases.is_sealed and (problem := session.seal(self._cases.cpu_s, True, self._cases.own_bytes)):
            raise _Stop(Trouble(UNMEASURED, problem))
        began = time.monotonic()
        deadline = min(began + self._left_s, self._ends_at)
        try:
            session.case([case], deadline)
            return port.serve(session.channels[0], deadline)
        except TimeoutError as error:
            limit_s = self._exercise.run.wall_s
            raise _Stop(Trouble("wall", f"it did not finish within {limit_s:g} s of wall time")) from error
        except (TooManyCalls, StoreFull) as error:
            raise _Stop(Trouble("memory" if isinstance(error, StoreFull) else "wall", str(error))) from error
        except Closed as error:
            raise _Stop(Trouble("died", "the process that ran it ended")) from error
        except Exception as error:
            # Whatever a worker may send: reading it must end no more than its own exercise.
            raise _Stop(Trouble("died", clean(f"what it sent back could not be read ({error})", 200))) from error
        finally:
            session.look_at_waiting()
            self._left_s -= time.monotonic() - began


def _words(error: Exception) -> str:
    return "its process ended" if isinstance(error, Closed) else clean(str(error), 100)
