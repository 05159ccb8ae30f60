"""Grade one submission: draw the hidden cases, have the worker run everything, judge what came back.

A job is plain data and its key says everything that its result depends on, so a stored result can stand in for a
run. Where the job runs, and where its result goes, is the caller's business.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

import grading
import labkit
from grading.hidden import Secret, hidden_of
from grading.supervisor.conversation import Fed, Step, run_steps
from grading.supervisor.forkserver import Forkserver
from grading.supervisor.result import CellResult, ExerciseResult, SubmissionResult
from labkit import exercises
from labkit.check import Verdict, judge
from labkit.check.api import refusal
from labkit.forbids import find_forbidden
from labkit.observe import make_inputs, public_seed
from labkit.oracles import oracle_of
from labkit.spec import STUB_MESSAGE, Exercise, Observation, Trouble

HIDDEN_HINT = "Think of sizes, dtypes and special values that the public cases do not have."


@dataclass(frozen=True)
class Job:
    """A submission ready to be run: steps for the worker, the program's text for the rules judged on text."""

    lab: str
    student: str
    attempt: str
    steps: tuple[Step, ...]
    program: tuple[str, ...]
    notes: tuple[str, ...]
    course_key: bytes

    @property
    def key(self) -> str:
        """Everything that the result depends on, as one digest."""
        parts = (self.lab, self.student, self.attempt, self.steps, self.program, grader_digest())
        text = json.dumps(parts, sort_keys=True).encode()
        return hashlib.sha256(self.course_key + text).hexdigest()


@functools.cache
def grader_digest() -> str:
    """A digest of our own source and of the versions that could change a result."""
    digest = hashlib.sha256(f"{platform.python_version()} {torch.__version__}".encode())
    for package in (labkit, grading):
        root = Path(package.__file__).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def grade_job(forkserver: Forkserver, job: Job) -> SubmissionResult:
    """Run and judge a job. Raises InfrastructureFault when the trouble is ours: then there is no result.

    The hidden cases have a run of their own, after everything that a student will read has been written down: what
    an answer sees of them, it cannot carry back into a cell's output or an error's text.
    """
    secret = Secret(job.course_key, job.lab, job.student, job.attempt)
    asked = {exercise.id: exercise for exercise in map(exercises.find, _exercises_in(job.steps))}
    public = {name: _public(exercise) for name, exercise in asked.items()}
    transcript = run_steps(forkserver, job.steps, public)
    shown = {}
    for name, exercise in asked.items():
        runs = _explained(exercise, transcript.exercises[name], transcript.cells)
        shown[name] = _guarded(exercise, lambda: _judge_public(exercise, job, runs, len(public[name])))  # noqa: B023
    hidden = {name: _hidden(asked[name], secret) for name, verdict in shown.items() if verdict.score > 0}
    unseen = run_steps(forkserver, _second_run(job.steps, hidden, transcript.cells), hidden)
    results = {}
    for name, exercise in asked.items():
        verdict = None
        if name in hidden:
            runs, n_cases = unseen.exercises[name], len(hidden[name])
            verdict = _guarded(exercise, lambda: _judge_hidden(exercise, runs, n_cases))  # noqa: B023
        results[name] = ExerciseResult(shown[name], verdict)
    return SubmissionResult(job.key, job.lab, job.student, results, transcript.cells, job.notes, forkserver.isolation)


def _exercises_in(steps: Sequence[Step]) -> list[str]:
    return [step["exercise"] for step in steps if step["do"] == "exercise"]


def _second_run(steps: Sequence[Step], hidden: Mapping[str, Fed], cells: Mapping[str, CellResult]) -> list[Step]:
    """The cells again, less those that did not end, and the exercises that have come this far."""
    steps = [
        step
        for step in steps
        if (step["do"] == "code" and not cells[step["id"]].skipped) or step.get("exercise") in hidden
    ]
    last = max((index for index, step in enumerate(steps) if step["do"] == "exercise"), default=-1)
    return steps[: last + 1]


def _public(exercise: Exercise) -> Fed:
    return [
        (case, make_inputs(exercise, case, public_seed(exercise.id, index)))
        for index, case in enumerate(exercise.public)
    ]


def _hidden(exercise: Exercise, secret: Secret) -> Fed:
    cases = hidden_of(exercise.id).cases(secret.draw(exercise.id))
    return [
        (case, make_inputs(exercise, case, secret.draw(exercise.id, f"inputs {index}").getrandbits(63)))
        for index, case in enumerate(cases)
    ]


def _judge_public(exercise: Exercise, job: Job, runs: Sequence[Observation], n_cases: int) -> Verdict:
    names = [answer.name for answer in exercise.answers]
    first_trouble = runs[0].trouble.kind if runs and runs[0].trouble else None
    found = find_forbidden(job.program, names, exercise.forbids)
    if found and first_trouble not in ("unanswered", "missing", "type"):
        runs = [Observation(exercise.public[0], {}, trouble=refusal(found))]
    return judge(exercise, oracle_of(exercise.id), runs, n_cases=n_cases)


def _judge_hidden(exercise: Exercise, runs: Sequence[Observation], n_cases: int) -> Verdict:
    """A hidden verdict keeps its rows for the instructor; its headline says that the public cases pass."""
    verdict = judge(exercise, oracle_of(exercise.id), runs, hidden_of(exercise.id).expect, n_cases=n_cases)
    if verdict.score > 0:
        return verdict
    headline = f"{exercise.id}: the public cases pass, but not every hidden one does."
    return replace(verdict, headline=headline, hint=verdict.hint or HIDDEN_HINT)


def _guarded(exercise: Exercise, judged: Callable[[], Verdict]) -> Verdict:
    """A result that the judge itself stumbles over earns nothing and is a person's to look at."""
    try:
        return judged()
    except Exception as error:
        headline = f"{exercise.id}: this could not be judged, and a person will look at it."
        return Verdict(exercise.id, "suspected", 0.0, headline, (("problem", type(error).__name__),))


def _explained(
    exercise: Exercise, runs: Sequence[Observation], cells: Mapping[str, CellResult]
) -> Sequence[Observation]:
    """Where an answer is missing because its cell failed, say that, rather than that it is missing."""
    if not (runs and runs[0].trouble and runs[0].trouble.kind == "missing"):
        return runs
    for answer in exercise.answers:
        cell = cells.get(answer.cell or exercise.id)
        if cell is not None and cell.error and STUB_MESSAGE in cell.error:
            return [replace(runs[0], trouble=Trouble("unanswered", STUB_MESSAGE))]
        if cell is not None and cell.error:
            return [replace(runs[0], trouble=Trouble("cell", f"its cell failed: {cell.error}"))]
    return runs
