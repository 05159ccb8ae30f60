"""Run a notebook's steps: in one job as far as it goes, and again without the step that broke it.

A step that hangs or kills the worker costs itself alone. The clock is ours. What the observations are worth is judged
elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grading.isolation.faults import InfrastructureFault
from grading.isolation.sandbox import Sandbox
from grading.supervisor.cases import UNMEASURED, CaseSet
from grading.supervisor.limits import CELL_LIMITS, CellLimits, granted, over_limit
from grading.supervisor.result import CellResult
from grading.supervisor.session import GRACE_S, Session
from grading.supervisor.transcript import Transcript
from grading.worker.protocol.job import Done, ExerciseOver, Observed, RunCase
from grading.worker.protocol.steps import RunCode, RunTest, ServeExercise, Step, exercise_of
from grading.worker.protocol.trees import case_to_tree, clean
from grading.worker.wire.frames import Closed
from grading.worker.wire.typed import WireError
from labkit import exercises
from labkit.spec import Case, Observation, Trouble

NO_MORE_CASES = ("unanswered", "missing", "type", "wall", "cpu", "memory", "died")


@dataclass(frozen=True)
class _Broken:
    """The worker cannot go on from this step: `_Broken(RunCode("a", "while True: pass"), Trouble("wall", "..."))`."""

    step: Step
    trouble: Trouble


_Ending = Literal["end", "threads", "again"]
"""Of an attempt that did not break. "threads": the cells left some running, so that forking is not safe. "again": an
exercise was done, but its process did not take its leave."""


def run_steps(
    sandbox: Sandbox, steps: Sequence[Step], case_sets: Mapping[str, CaseSet], limits: CellLimits = CELL_LIMITS
) -> Transcript:
    """Run all steps and return what happened. Raises InfrastructureFault when the trouble is ours.

    Exercises that are answered by text alone have jobs in which no cell has run.
    """
    transcript = Transcript()
    ends_at = time.monotonic() + limits.submission_s
    for with_cells in (True, False):
        group = [step for step in steps if needs_cells(step) == with_cells]
        _run_group(sandbox, group, case_sets, limits, transcript, ends_at)
    return transcript


def needs_cells(step: Step) -> bool:
    """Whether the step belongs to the notebook's own process: a cell, or an exercise whose answer a cell makes."""
    return not isinstance(step, ServeExercise) or exercises.find(step.exercise_id).run.cells


def _run_group(
    sandbox: Sandbox,
    steps: Sequence[Step],
    case_sets: Mapping[str, CaseSet],
    limits: CellLimits,
    transcript: Transcript,
    ends_at: float,
) -> None:
    """Run these steps and add what happened to the transcript."""
    broken: dict[str, Trouble] = {}
    fork = True
    while open_steps := [step for step in steps if not _is_done(step, transcript, broken)]:
        if time.monotonic() > ends_at:
            _give_up(open_steps, transcript, limits)
            break
        together = [step for step in open_steps if not _is_alone(step, case_sets)]
        alone = None if together else open_steps[0]
        left = [
            step
            for step in steps
            if step.cell_id not in broken
            and not _is_recorded(step, transcript)
            and (step is alone or not _is_alone(step, case_sets))
        ]
        if alone or not fork:
            left = _until_exercise(left)
        grants = _grants(alone, case_sets) if alone else ()
        session = Session.open(sandbox, grants)
        try:
            ending = _Attempt(session, transcript, case_sets, limits, ends_at).run(left, fork and not alone)
        finally:
            ended = session.end()
            transcript.cpu_s += ended.cpu_s
        if ending == "threads":
            fork = False
        elif isinstance(ending, _Broken):
            _record(_with_reason(ending, ended.over, grants), transcript, broken)


class _Attempt:
    """One job's steps: from the first until it has done them all or breaks."""

    def __init__(
        self,
        session: Session,
        transcript: Transcript,
        case_sets: Mapping[str, CaseSet],
        limits: CellLimits,
        ends_at: float,
    ) -> None:
        self._session = session
        self._transcript = transcript
        self._case_sets = case_sets
        self._limits = limits
        self._ends_at = ends_at
        self._seconds_in_cells = 0.0
        self._allowed = ""
        """The wall time of the step that runs, for a person."""

    def run(self, steps: Sequence[Step], fork: bool) -> _Broken | _Ending:
        """How it ended, or where it broke. Raises InfrastructureFault."""
        self._session.begin(steps, fork)
        for step in steps:
            try:
                if isinstance(step, ServeExercise):
                    ending = self._exercise(step, fork)
                    if ending == "threads" and not fork:
                        # Sent where no fork was wanted, it is a lie that would have us begin again for ever.
                        return _Broken(step, Trouble("died", "it could not be run by itself"))
                    if ending != "end":
                        return ending
                else:
                    self._cell(step)
            except TimeoutError:
                return _Broken(step, Trouble("wall", f"it did not finish within {self._allowed}"))
            except Closed:
                return _Broken(step, Trouble("died", "the process that ran it ended"))
            except InfrastructureFault:
                raise
            except Exception as error:
                # Whatever a worker may send: reading it must end no more than its own step.
                return _Broken(step, Trouble("died", clean(f"what it sent back could not be read ({error})", 200)))
        return "end"

    def _cell(self, step: RunCode | RunTest) -> None:
        began = time.monotonic()
        left_s, self._allowed = self._left_for_a_cell(began)
        try:
            (ended,) = self._session.cell(began + left_s)
        finally:
            self._seconds_in_cells += time.monotonic() - began
        # What a cell printed when it ran before is replaced.
        shown = sum(len(cell.printed) for name, cell in self._transcript.cells.items() if name != step.cell_id)
        room = max(self._limits.printed - shown, 0)
        printed = ended.printed if len(ended.printed) <= room else ended.printed[:room] + "\n[the rest was cut]"
        self._transcript.cells[step.cell_id] = CellResult(ended.ok, ended.error, printed, ended.value)

    def _left_for_a_cell(self, now: float) -> tuple[float, str]:
        """The wall time in seconds that a cell may take which begins now, and the same in words."""
        limits = self._limits
        of_cells_s = max(limits.all_s - self._seconds_in_cells, 0.0)
        of_all_s = max(self._ends_at - now, 0.0)
        return min(
            (limits.one_s, f"{limits.one_s:g} s of wall time"),
            (of_cells_s, f"{of_cells_s:.1f} s of wall time, which the cells before it left of {limits.all_s:g} s"),
            (of_all_s, f"{of_all_s:.1f} s of wall time, which were left of the notebook's {limits.submission_s:g} s"),
        )

    def _exercise(self, step: ServeExercise, fork: bool) -> _Ending:
        limit_s = exercises.find(step.exercise_id).run.wall_s
        self._allowed = f"{limit_s:g} s of wall time"
        limit_s += GRACE_S
        began = time.monotonic()
        if not self._session.ready(began + limit_s):
            return "threads"
        limit_s -= time.monotonic() - began
        cases = self._case_sets[step.exercise_id]
        runs = self._transcript.exercises.setdefault(step.exercise_id, [])
        with_files = not cases.bounds_memory
        if cases.is_sealed and (problem := self._session.seal(cases.cpu_s, with_files, cases.own_bytes)):
            runs.append(cases.inputs[0].without_run(Trouble(UNMEASURED, problem)))
            return "end"
        return self._cases(step.exercise_id, cases, runs, limit_s, fork)

    def _cases(self, exercise_id: str, cases: CaseSet, runs: list[Observation], limit_s: float, fork: bool) -> _Ending:
        (channel,), (witness,) = self._session.channels, self._session.witnesses
        readings = self._transcript.readings.setdefault(exercise_id, [])
        for inputs in cases.inputs:
            began = time.monotonic()
            lend = inputs.bounds_memory
            if lend and (problem := witness.bound_memory(inputs.inputs_bytes, inputs.memory_limit_bytes)):
                runs.append(inputs.without_run(Trouble(UNMEASURED, problem)))
                break
            self._session.case([RunCase(case_to_tree(inputs.case), inputs.tree, lend)], began + limit_s)
            frame = channel.expect((Observed, ExerciseOver), began + limit_s)
            limit_s -= time.monotonic() - began
            if isinstance(frame, ExerciseOver):
                runs.append(inputs.without_run(Trouble("died", f"the process that ran it ended ({frame.how})")))
                return "end"
            # Kept as they come: a later case that breaks the worker takes none of these with it.
            runs.append(frame.as_observation(inputs.case, inputs.tree, lend))
            self._transcript.launch_logs.setdefault(exercise_id, []).append(frame.launch_log)
            if runs[-1].trouble and runs[-1].trouble.kind in NO_MORE_CASES:
                # The process that was too slow goes with its exercise.
                self._session.look_at_waiting()
                break
            if lend:
                readings.append(witness.reading(frame.measured.get("peak_bytes", 0.0), inputs.inputs_bytes))
        else:
            for meter, n in cases.probes:
                readings += self._session.probe(meter, n, time.monotonic() + limit_s)
        over_by = time.monotonic() + GRACE_S
        try:
            channel.post(Done(), over_by)
            if fork:
                channel.expect(ExerciseOver, over_by)
        except (TimeoutError, WireError):
            # All was observed by then: a machine that stands still here costs the cells another run, and no points.
            return "again"
        return "end"


def _is_alone(step: Step, case_sets: Mapping[str, CaseSet]) -> bool:
    """Whether an exercise has a job of its own: it was granted something, or the job is sealed for it."""
    return isinstance(step, ServeExercise) and bool(_grants(step, case_sets) or case_sets[step.exercise_id].is_sealed)


def _grants(step: ServeExercise, case_sets: Mapping[str, CaseSet]) -> tuple[str, ...]:
    return granted(exercises.find(step.exercise_id), case_sets[step.exercise_id])


def _with_reason(ending: _Broken, over: str | None, grants: tuple[str, ...]) -> _Broken:
    if over is None or ending.trouble.kind != "died":
        return ending
    return _Broken(ending.step, over_limit(over, grants))


def _record(ending: _Broken, transcript: Transcript, broken: dict[str, Trouble]) -> None:
    step, trouble = ending.step, ending.trouble
    broken[step.cell_id] = trouble
    if isinstance(step, ServeExercise):
        runs = transcript.exercises.setdefault(step.exercise_id, [])
        if not (runs and runs[-1].trouble):
            runs.append(Observation(Case(), {}, trouble=trouble))
    else:
        transcript.cells[step.cell_id] = CellResult(False, f"{trouble.text}: the cell was skipped", "", skipped=True)


def _give_up(open_steps: Sequence[Step], transcript: Transcript, limits: CellLimits) -> None:
    for step in open_steps:
        _record(_Broken(step, limits.out_of_time()), transcript, {})


def _is_done(step: Step, transcript: Transcript, broken: Mapping[str, Trouble]) -> bool:
    return step.cell_id in broken or step.cell_id in transcript.cells or _is_recorded(step, transcript)


def _is_recorded(step: Step, transcript: Transcript) -> bool:
    return exercise_of(step) in transcript.exercises


def _until_exercise(steps: Sequence[Step]) -> list[Step]:
    for index, step in enumerate(steps):
        if isinstance(step, ServeExercise):
            return list(steps[: index + 1])
    return list(steps)
