"""Talk a job through: run its steps on a worker, send its exercises their cases, and write down what came back.

A step that hangs or kills the worker costs itself alone: the job starts again without it. The clock is ours. What
the observations are worth is judged elsewhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grading.isolation.sandbox import InfrastructureFault, Sandbox
from grading.supervisor.cases import CELL_LIMITS, UNMEASURED, CaseInputs, CaseSet, CellLimits, Transcript
from grading.supervisor.result import CellResult
from grading.supervisor.witness import MemoryWitness, Reading, probe_readings
from grading.worker.confine.plan import NO_FILES, PLAIN, with_grants
from grading.worker.protocol.steps import ServeExercise, Step, exercise_of, step_to_tree
from grading.worker.wire.frames import Closed, WireError, case_to_tree, clean, trouble_from_tree
from labkit import exercises
from labkit.spec import Case, Exercise, GiB, Observation, Tree, Trouble

GRACE_S = 1.0
START_S = 30.0
MAX_TEXT = 70_000
NO_MORE_CASES = ("unanswered", "missing", "type", "wall", "cpu", "memory", "died")


class LostUnderStudent(InfrastructureFault):
    """The forking process was lost after the student's code had begun to run."""


@dataclass(frozen=True)
class _Broken:
    """The worker cannot go on from this step."""

    step: Step
    trouble: Trouble


def run_steps(
    sandbox: Sandbox, steps: Sequence[Step], case_sets: Mapping[str, CaseSet], limits: CellLimits = CELL_LIMITS
) -> Transcript:
    """Run all steps and return what happened. Raises InfrastructureFault when the trouble is ours."""
    transcript = Transcript()
    broken: dict[str, Trouble] = {}
    fork = True
    ends_at = time.monotonic() + limits.submission_s
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
        attempt = _Attempt(sandbox, grants, transcript, case_sets, limits, ends_at)
        try:
            ending = attempt.run(left, fork and not alone)
        finally:
            over = attempt.end()
        if ending == "threads":
            fork = False
        elif isinstance(ending, _Broken):
            _record(_with_reason(ending, over, grants), transcript, broken)
    return transcript


def _is_alone(step: Step, case_sets: Mapping[str, CaseSet]) -> bool:
    """Whether an exercise has a job of its own: it was granted something, or the job is sealed for it."""
    return isinstance(step, ServeExercise) and bool(_grants(step, case_sets) or case_sets[step.exercise_id].is_sealed)


def _grants(step: Step, case_sets: Mapping[str, CaseSet]) -> tuple[str, ...]:
    return granted(exercises.find(step.exercise_id), case_sets[step.exercise_id])


def granted(exercise: Exercise, cases: CaseSet) -> tuple[str, ...]:
    """What an exercise may do beyond the plain profile, or less than that."""
    return (*exercise.run.needs, NO_FILES) if cases.bounds_memory else exercise.run.needs


def _with_reason(ending: _Broken, over: str | None, grants: tuple[str, ...]) -> _Broken:
    if over is None or ending.trouble.kind != "died":
        return ending
    return _Broken(ending.step, over_limit(over, grants))


def over_limit(over: str, grants: tuple[str, ...]) -> Trouble:
    """What is said of a job that was ended for this limit (`Ended.over`), under what it had been granted."""
    limits = with_grants(PLAIN, grants)
    if over == "cpu":
        return Trouble("cpu", "it used up its CPU time")
    if over == "files":
        return Trouble("memory", f"it made more than {limits.n_files:,} files")
    return Trouble("memory", f"its processes together used more than {limits.memory_bytes / GiB:g} GiB of memory")


class _Attempt:
    """One worker's life: from its first step until it has done them all or breaks."""

    def __init__(
        self,
        sandbox: Sandbox,
        grants: Sequence[str],
        transcript: Transcript,
        case_sets: Mapping[str, CaseSet],
        limits: CellLimits,
        ends_at: float,
    ) -> None:
        self._sandbox = sandbox
        self._channel = sandbox.open_job(grants)
        self._witness = MemoryWitness(sandbox)
        self._limits = limits
        self._ends_at = ends_at
        self._seconds_in_cells = 0.0
        self._allowed = ""
        """The wall time of the step that runs, for a person."""
        self._has_begun = False
        self._transcript = transcript
        self._case_sets = case_sets

    def end(self) -> str | None:
        """End the worker; the limit for which it had been ended before, or None. Raises InfrastructureFault."""
        self._channel.close()
        try:
            ended = self._sandbox.kill_job()
        except InfrastructureFault as error:
            # The forking process was well before the student's code began; a second time is no accident.
            raise (LostUnderStudent(str(error)) if self._has_begun else error) from error
        self._transcript.cpu_s += ended.cpu_s
        return ended.over

    def run(self, steps: Sequence[Step], fork: bool) -> _Broken | str:
        """ "end", "threads" (the cells left some running, so that forking is not safe), "again" (an exercise was done,
        but its process did not take its leave), or where it broke.
        """
        try:
            started_by = time.monotonic() + START_S
            self._channel.send("job", {"steps": [step_to_tree(step) for step in steps], "fork": fork}, started_by)
        except (TimeoutError, Closed) as error:
            # Nothing of the student's has run yet.
            raise InfrastructureFault("the worker did not take its job") from error
        for step in steps:
            try:
                if isinstance(step, ServeExercise):
                    ending = self._exercise(step, fork)
                    if ending == "threads" and not fork:
                        # Said where no fork was wanted, it is a lie that would have us begin again for ever.
                        return _Broken(step, Trouble("died", "it could not be run by itself"))
                    if ending != "over":
                        return ending
                else:
                    self._cell(step)
            except (TimeoutError, Closed) as error:
                if not self._has_begun:
                    words = self._sandbox.last_words()
                    raise InfrastructureFault(f"the worker ended before it ran anything: {words}") from error
                if isinstance(error, Closed):
                    return _Broken(step, Trouble("died", "the process that ran it ended"))
                return _Broken(step, Trouble("wall", f"it did not finish within {self._allowed}"))
            except InfrastructureFault:
                raise
            except Exception as error:
                # Whatever a worker may send: reading it must end no more than its own step.
                return _Broken(step, Trouble("died", clean(f"what it sent back could not be read ({error})", 200)))
        return "end"

    def _begin(self) -> None:
        """Wait for the worker's first word; until then it is our own code that takes the time."""
        if not self._has_begun:
            started_by = time.monotonic() + START_S
            self._wait("begins", started_by)
            self._witness.take_baseline()
            self._channel.send("go", deadline=started_by)
            self._has_begun = True

    def _cell(self, step: Step) -> None:
        self._begin()
        began = time.monotonic()
        left_s, self._allowed = self._left_for_a_cell(began)
        deadline = began + left_s
        try:
            self._wait("at", deadline)
            said = self._wait("cell", deadline)
        finally:
            self._seconds_in_cells += time.monotonic() - began
        # What a cell printed when it ran before is replaced.
        shown = sum(len(cell.printed) for name, cell in self._transcript.cells.items() if name != step.cell_id)
        room = max(self._limits.printed - shown, 0)
        printed = clean(said["printed"], MAX_TEXT)
        self._transcript.cells[step.cell_id] = CellResult(
            ok=said["ok"] is True,
            error=None if said["error"] is None else clean(said["error"], 400),
            printed=printed if len(printed) <= room else printed[:room] + "\n[the rest was cut]",
            value=None if said["value"] is None else clean(said["value"], 100),
        )

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

    def _exercise(self, step: Step, fork: bool) -> str:
        self._begin()
        limit_s = exercises.find(step.exercise_id).run.wall_s
        self._allowed = f"{limit_s:g} s of wall time"
        limit_s += GRACE_S
        began = time.monotonic()
        self._wait("at", began + limit_s)
        kind, _ = self._channel.receive(began + limit_s)
        limit_s -= time.monotonic() - began
        if kind == "threads":
            return kind
        if kind != "ready":
            raise WireError(f'"{kind[:40]}" where "ready" was due')
        name = step.exercise_id
        cases = self._case_sets[name]
        runs = self._transcript.exercises.setdefault(name, [])
        if cases.is_sealed and (problem := self._witness.seal(cases.cpu_s, files=not cases.bounds_memory)):
            runs.append(Observation(cases.inputs[0].case, cases.inputs[0].tree, trouble=Trouble(UNMEASURED, problem)))
            return "over"
        readings = self._transcript.readings.setdefault(name, [])
        for inputs in cases.inputs:
            began = time.monotonic()
            if inputs.memory_limit_bytes is not None and (
                problem := self._witness.bound_memory(inputs.inputs_bytes, inputs.memory_limit_bytes)
            ):
                runs.append(Observation(inputs.case, inputs.tree, trouble=Trouble(UNMEASURED, problem)))
                break
            sent = {"case": case_to_tree(inputs.case), "tree": inputs.tree, "watched": inputs.bounds_memory}
            self._channel.send("case", sent, began + limit_s, as_memory=inputs.bounds_memory)
            kind, said = self._channel.receive(began + limit_s)
            limit_s -= time.monotonic() - began
            if kind == "exercise over":
                runs.append(Observation(inputs.case, inputs.tree, trouble=_death(said["how"])))
                return "over"
            if kind != "observed":
                raise WireError(f'"{kind[:40]}" where a result was due')
            # Kept as they come: a later case that breaks the worker takes none of these with it.
            runs.append(_observation(inputs, said))
            self._transcript.tapes.setdefault(name, []).append(said.get("tape"))
            if runs[-1].trouble and runs[-1].trouble.kind in NO_MORE_CASES:
                break
            if inputs.bounds_memory:
                readings.append(self._witness.reading(runs[-1].measured.get("peak_bytes", 0.0), inputs.inputs_bytes))
        else:
            for meter, n in cases.probes:
                readings += self._probe(meter, n, limit_s)
        over_by = time.monotonic() + GRACE_S
        try:
            self._channel.send("done", deadline=over_by)
            if fork:
                self._wait("exercise over", over_by)
        except (TimeoutError, WireError):
            # All was observed by then: a machine that stands still here costs the cells another run, and no points.
            return "again"
        return "over"

    def _probe(self, meter: str, n: int, within_s: float) -> list[Reading]:
        deadline = time.monotonic() + within_s
        self._channel.send("probe", {"meter": meter, "n": n}, deadline)
        said = self._wait("probed", deadline)["measured"]
        return probe_readings(meter, n, measured_of(said))

    def _wait(self, kind: str, deadline: float) -> dict[str, Tree]:
        got, said = self._channel.receive(deadline)
        if got != kind:
            raise WireError(f'"{got[:40]}" where "{kind}" was due')
        return said


def _observation(inputs: CaseInputs, said: Mapping[str, Tree]) -> Observation:
    # What was lent is not looked at afterwards, so nothing can be said of it; what is not sent back was not changed.
    back = inputs.tree if inputs.bounds_memory else said.get("back", inputs.tree)
    trouble = trouble_from_tree(said["trouble"])
    return Observation(inputs.case, inputs.tree, said["got"], back, measured_of(said["measured"]), trouble)


def measured_of(said: Mapping[str, Tree]) -> dict[str, float]:
    """The figures that a worker sends, as far as they are figures."""
    return {
        str(name): float(value)
        for name, value in said.items()
        if type(value) in (int, float) and math.isfinite(value) and value >= 0
    }


def _death(how: Tree) -> Trouble:
    return Trouble("died", f"the process that ran it ended ({clean(how, 40)})")


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
    text = f"the notebook used more than {limits.submission_s:g} s before this could be run"
    for step in open_steps:
        _record(_Broken(step, Trouble("wall", text)), transcript, {})


def _is_done(step: Step, transcript: Transcript, broken: Mapping[str, Trouble]) -> bool:
    if step.cell_id in broken:
        return True
    return step.cell_id in transcript.cells or _is_recorded(step, transcript)


def _is_recorded(step: Step, transcript: Transcript) -> bool:
    return exercise_of(step) in transcript.exercises


def _until_exercise(steps: Sequence[Step]) -> list[Step]:
    for index, step in enumerate(steps):
        if isinstance(step, ServeExercise):
            return list(steps[: index + 1])
    return list(steps)
