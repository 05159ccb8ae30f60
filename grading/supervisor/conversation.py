"""Talk a job through: run its steps on a worker, feed its exercises, and write down what came back.

A step that hangs or kills the worker costs itself alone: the job starts again without it. The clock is ours. What
the observations are worth is judged elsewhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grading.supervisor.forkserver import Forkserver, InfrastructureFault
from grading.supervisor.result import CellResult
from grading.worker.wire import Channel, Closed, WireError, case_to_tree, clean, trouble_from_tree
from labkit import exercises
from labkit.spec import Case, Observation, Tree, Trouble

GRACE_S = 2.0
START_S = 30.0
MAX_TEXT = 70_000
_NO_MORE_CASES = ("unanswered", "missing", "type", "wall", "cpu", "memory", "died")
_CPU_SIGNALS = ("SIGXCPU", "SIGPROF")

Step = Mapping[str, Tree]
Fed = Sequence[tuple[Case, Tree]]
"""The cases of an exercise with their inputs, in the order in which they are fed."""


@dataclass(frozen=True)
class CellLimits:
    """Wall time for one cell, for all cells of one run through them, and for everything; characters printed in all."""

    one_s: float = 30.0
    all_s: float = 60.0
    submission_s: float = 300.0
    printed: int = 2**20


@dataclass
class Transcript:
    """What happened, by cell id and by exercise id."""

    cells: dict[str, CellResult] = field(default_factory=dict)
    exercises: dict[str, list[Observation]] = field(default_factory=dict)
    n_printed: int = 0


class LostUnderStudent(InfrastructureFault):
    """The forking process was lost after the student's code had begun to run."""


@dataclass(frozen=True)
class _Broken:
    """The worker cannot go on from this step."""

    step: Step
    trouble: Trouble


def run_steps(
    forkserver: Forkserver, steps: Sequence[Step], fed: Mapping[str, Fed], limits: CellLimits = CellLimits()
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
        left = [step for step in steps if step["id"] not in broken and not _is_recorded(step, transcript)]
        channel = forkserver.open_job()
        attempt = _Attempt(channel, transcript, fed, limits, ends_at)
        try:
            ending = attempt.run(left if fork else _until_exercise(left), fork)
        finally:
            channel.close()
            _end_job(forkserver, attempt)
        if ending == "threads":
            fork = False
        elif isinstance(ending, _Broken):
            _record(ending, transcript, broken)
    return transcript


class _Attempt:
    """One worker's life: from its first step until it has done them all or breaks."""

    def __init__(
        self, channel: Channel, transcript: Transcript, fed: Mapping[str, Fed], limits: CellLimits, ends_at: float
    ) -> None:
        self._channel = channel
        self._limits = limits
        self._ends_at = ends_at
        self._seconds_in_cells = 0.0
        self.has_begun = False
        self._transcript = transcript
        self._fed = fed

    def run(self, steps: Sequence[Step], fork: bool) -> _Broken | str:
        """ "end", "threads" (the cells left some running, so that forking is not safe), or where it broke."""
        try:
            started_by = time.monotonic() + START_S
            self._channel.send("job", {"steps": [dict(step) for step in steps], "fork": fork}, started_by)
        except (TimeoutError, Closed) as error:
            # Nothing of the student's has run yet.
            raise InfrastructureFault("the worker did not take its job") from error
        for step in steps:
            try:
                if step["do"] == "exercise":
                    if self._exercise(step, fork) == "threads":
                        # Said where no fork was wanted, it is a lie that would have us begin again for ever.
                        return "threads" if fork else _Broken(step, Trouble("died", "it could not be run by itself"))
                else:
                    self._cell(step)
            except (TimeoutError, Closed) as error:
                if not self.has_begun:
                    raise InfrastructureFault("the worker ended before it ran anything") from error
                if isinstance(error, Closed):
                    return _Broken(step, Trouble("died", "the process that ran it ended"))
                limit_s = self._limits.one_s
                if step["do"] == "exercise":
                    limit_s = exercises.find(step["exercise"]).run.wall_s
                return _Broken(step, Trouble("wall", f"it did not finish within {limit_s:g} s of wall time"))
            except Exception as error:
                # Whatever a worker may send: reading it must end no more than its own step.
                return _Broken(step, Trouble("died", clean(f"what it sent back could not be read ({error})", 200)))
        return "end"

    def _cell(self, step: Step) -> None:
        began = time.monotonic()
        left_s = min(self._limits.one_s, self._limits.all_s - self._seconds_in_cells)
        deadline = min(began + left_s, self._ends_at)
        try:
            self._wait("at", deadline)
            self.has_begun = True
            said = self._wait("cell", deadline)
        finally:
            self._seconds_in_cells += time.monotonic() - began
        room = max(self._limits.printed - self._transcript.n_printed, 0)
        printed = clean(said["printed"], MAX_TEXT)
        self._transcript.n_printed += len(printed)
        self._transcript.cells[step["id"]] = CellResult(
            ok=said["ok"] is True,
            error=None if said["error"] is None else clean(said["error"], 400),
            printed=printed if len(printed) <= room else printed[:room] + "\n[the rest was cut]",
            value=None if said["value"] is None else clean(said["value"], 100),
        )

    def _exercise(self, step: Step, fork: bool) -> str:
        limit_s = exercises.find(step["exercise"]).run.wall_s + GRACE_S
        began = time.monotonic()
        self._wait("at", began + limit_s)
        self.has_begun = True
        kind, _ = self._channel.receive(began + limit_s)
        limit_s -= time.monotonic() - began
        if kind == "threads":
            return kind
        if kind != "ready":
            raise WireError(f'"{kind[:40]}" where "ready" was due')
        runs: list[Observation] = []
        for case, tree in self._fed[step["exercise"]]:
            began = time.monotonic()
            self._channel.send("case", {"case": case_to_tree(case), "tree": tree}, began + limit_s)
            kind, said = self._channel.receive(began + limit_s)
            limit_s -= time.monotonic() - began
            if kind == "exercise over":
                runs.append(Observation(case, tree, trouble=_death(str(said["how"]))))
                self._transcript.exercises[step["exercise"]] = runs
                return "over"
            if kind != "observed":
                raise WireError(f'"{kind[:40]}" where a result was due')
            runs.append(_observation(case, tree, said))
            # Kept as they come: a later case that breaks the worker takes none of these with it.
            self._transcript.exercises[step["exercise"]] = runs
            if runs[-1].trouble and runs[-1].trouble.kind in _NO_MORE_CASES:
                break
        over_by = time.monotonic() + GRACE_S
        self._channel.send("done", deadline=over_by)
        if fork:
            self._wait("exercise over", over_by)
        return "over"

    def _wait(self, kind: str, deadline: float) -> dict[str, Tree]:
        got, said = self._channel.receive(deadline)
        if got != kind:
            raise WireError(f'"{got[:40]}" where "{kind}" was due')
        return said


def _observation(case: Case, tree: Tree, said: Mapping[str, Tree]) -> Observation:
    measured = {
        str(name): float(value)
        for name, value in said["measured"].items()
        if type(value) in (int, float) and math.isfinite(value) and value >= 0
    }
    return Observation(case, tree, said["got"], said["back"], measured, trouble_from_tree(said["trouble"]))


def _death(how: str) -> Trouble:
    if how in _CPU_SIGNALS:
        return Trouble("cpu", "it used up its CPU time")
    return Trouble("died", f"the process that ran it ended ({clean(how, 40)})")


def _record(ending: _Broken, transcript: Transcript, broken: dict[str, Trouble]) -> None:
    step, trouble = ending.step, ending.trouble
    broken[step["id"]] = trouble
    if step["do"] == "exercise":
        runs = transcript.exercises.setdefault(step["exercise"], [])
        if not (runs and runs[-1].trouble):
            runs.append(Observation(Case(), {}, trouble=trouble))
    else:
        transcript.cells[step["id"]] = CellResult(False, f"{trouble.text}: the cell was skipped", "", skipped=True)


def _end_job(forkserver: Forkserver, attempt: _Attempt) -> None:
    try:
        forkserver.kill_job()
    except InfrastructureFault as error:
        # The forking process was well before the student's code began; a second time is no accident.
        raise (LostUnderStudent(str(error)) if attempt.has_begun else error) from error


def _give_up(open_steps: Sequence[Step], transcript: Transcript, limits: CellLimits) -> None:
    text = f"the notebook used more than {limits.submission_s:g} s before this could be run"
    for step in open_steps:
        _record(_Broken(step, Trouble("wall", text)), transcript, {})


def _is_done(step: Step, transcript: Transcript, broken: Mapping[str, Trouble]) -> bool:
    if step["id"] in broken:
        return True
    return step["id"] in transcript.cells or _is_recorded(step, transcript)


def _is_recorded(step: Step, transcript: Transcript) -> bool:
    return step["do"] == "exercise" and step["exercise"] in transcript.exercises


def _until_exercise(steps: Sequence[Step]) -> list[Step]:
    for index, step in enumerate(steps):
        if step["do"] == "exercise":
            return list(steps[: index + 1])
    return list(steps)
