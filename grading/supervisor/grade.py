"""Grade one submission: draw the hidden cases, have the worker run everything, judge what came back.

A job is plain data and its key says everything that its result depends on, so a stored result can stand in for a
run. Where the job runs, and where its result goes, is the caller's business.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
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
    """Run and judge a job. Raises InfrastructureFault when the trouble is ours: then there is no result."""
    secret = Secret(job.course_key, job.lab, job.student, job.attempt)
    asked = [exercises.find(step["exercise"]) for step in job.steps if step["do"] == "exercise"]
    fed = {exercise.id: (_public(exercise), _hidden(exercise, secret)) for exercise in asked}
    transcript = run_steps(forkserver, job.steps, {name: public + hidden for name, (public, hidden) in fed.items()})
    results = {}
    for exercise in asked:
        public, hidden = fed[exercise.id]
        runs = _explained(exercise, transcript.exercises[exercise.id], transcript.cells)
        results[exercise.id] = _judge(exercise, job, runs, len(public), len(hidden))
    return SubmissionResult(job.key, job.lab, job.student, results, transcript.cells, job.notes)


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


def _judge(exercise: Exercise, job: Job, runs: Sequence[Observation], n_public: int, n_hidden: int) -> ExerciseResult:
    oracle = oracle_of(exercise.id)
    names = [answer.name for answer in exercise.answers]
    first_trouble = runs[0].trouble.kind if runs and runs[0].trouble else None
    found = find_forbidden(job.program, names, exercise.forbids)
    if found and first_trouble not in ("unanswered", "missing", "type"):
        runs = [Observation(exercise.public[0], {}, trouble=refusal(found))]
    public = judge(exercise, oracle, runs[:n_public], n_cases=n_public)
    if public.score == 0:
        return ExerciseResult(public, None)
    hidden = judge(exercise, oracle, runs[n_public:], hidden_of(exercise.id).expect, n_cases=n_hidden)
    return ExerciseResult(public, _as_hidden(hidden, exercise))


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


def _as_hidden(verdict: Verdict, exercise: Exercise) -> Verdict:
    """A hidden verdict keeps its rows for the instructor; its headline says that the public cases pass."""
    if verdict.score > 0:
        return verdict
    headline = f"{exercise.id}: the public cases pass, but not every hidden one does."
    return replace(verdict, headline=headline, hint=verdict.hint or HIDDEN_HINT)
