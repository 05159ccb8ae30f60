"""Grade one submission in two rounds: public cases first, and then the hidden ones, of which verdicts alone are kept.

The hidden cases have a run of their own, after everything that a student will read has been written down: what an
answer sees of them, it cannot carry back into a cell's output or an error's text. How a run is judged is `verdicts`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grading.hidden import Secret
from grading.isolation.sandbox import Sandbox
from grading.supervisor.apart import ApartSchedule, only_needed, runs_apart, without_apart
from grading.supervisor.attempts import run_steps
from grading.supervisor.cases import CaseSet, hidden_cases, public_cases
from grading.supervisor.job import Job
from grading.supervisor.kernels import is_rerun
from grading.supervisor.result import CellResult, ExerciseResult, SubmissionResult
from grading.supervisor.transcript import Transcript
from grading.supervisor.verdicts import (
    disguises,
    doubts,
    is_unmeasured,
    judge_hidden,
    judge_public,
    judge_run_again,
    reasons,
)
from grading.worker.procfs import COUNTS_WAITING, waited_s
from grading.worker.protocol.steps import RunCode, Step, exercise_of
from labkit import exercises
from labkit.check.verdict import Verdict
from labkit.oracles import oracle_of
from labkit.spec import Exercise


@dataclass
class _Round:
    """What one round came to: `verdicts["02-sum"].passed`. transcript: of everything but exercises that run apart."""

    transcript: Transcript
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cpu_s: float = 0.0
    """What the transcript does not account for."""


def grade_job(sandbox: Sandbox, job: Job) -> SubmissionResult:
    """Run and judge a job. Raises InfrastructureFault when the trouble is ours: then there is no result."""
    began, waited_before_s = time.monotonic(), _waited_s(sandbox)
    public = _public_round(sandbox, job)
    hidden = _hidden_round(sandbox, job, public)
    usage = {"wall_s": time.monotonic() - began}
    if COUNTS_WAITING:
        usage["waited_s"] = _waited_s(sandbox) - waited_before_s
    return _decide(sandbox, job, public, hidden, usage)


def _waited_s(sandbox: Sandbox) -> float:
    """How long jobs so far, and we who hold the clock, have waited for a processor."""
    return sandbox.waited_s + waited_s(os.getpid())


def _public_round(sandbox: Sandbox, job: Job) -> _Round:
    """The cells and the public cases."""
    asked = _exercises_in(job.steps)
    case_sets = {exercise.id: public_cases(exercise) for exercise in asked}
    this = _Round(run_steps(sandbox, without_apart(job.steps), case_sets))
    apart = ApartSchedule(sandbox, job.steps, this.transcript)
    for exercise in asked:
        cases = case_sets[exercise.id]

        def judged(found: Transcript, exercise: Exercise = exercise, cases: CaseSet = cases) -> Verdict:
            return judge_public(exercise, job, found, this.transcript.cells, cases.n_cases)

        is_apart = runs_apart(exercise)
        verdict = apart.verdict(exercise, cases, judged) if is_apart else judged(this.transcript)
        this.verdicts[exercise.id] = verdict
    this.cpu_s += apart.cpu_s
    return this


def _hidden_round(sandbox: Sandbox, job: Job, public: _Round) -> _Round:
    """The cells again, and the hidden cases of the exercises that have come this far."""
    secret = Secret(job.course_key, job.lab, job.student, job.attempt)
    asked = [exercise for exercise in _exercises_in(job.steps) if public.verdicts[exercise.id].score > 0]
    case_sets = {exercise.id: hidden_cases(exercise, secret) for exercise in asked}
    steps = _steps_again(without_apart(job.steps), case_sets, public.transcript.cells)
    this = _Round(run_steps(sandbox, steps, case_sets))
    apart = ApartSchedule(sandbox, job.steps, public.transcript)
    for exercise in asked:
        cases = case_sets[exercise.id]

        def judged(found: Transcript, exercise: Exercise = exercise, cases: CaseSet = cases) -> Verdict:
            verdict = judge_hidden(exercise, found, cases)
            has_to_prove_it = verdict.score > 0 and is_rerun(oracle_of(exercise.id))
            if not has_to_prove_it:
                return verdict
            public_logs = public.transcript.launch_logs.get(exercise.id, ())
            return judge_run_again(sandbox, exercise, job, found, cases, secret, public_logs)

        if runs_apart(exercise):
            verdict = apart.verdict(exercise, cases, judged)
        else:
            verdict = judged(this.transcript)
            if verdict.outcome == "suspected" and cases.is_sealed:
                # Large things that other cells left behind are no reason for doubt: once more, without them.
                by_itself = run_steps(sandbox, only_needed(job.steps, exercise), {exercise.id: cases})
                alone = judged(by_itself)
                this.cpu_s += by_itself.cpu_s
                if alone.score > 0:
                    if not is_unmeasured(this.transcript.exercises[exercise.id]):
                        text = f"passes without the other cells, but not with them: {reasons(verdict)}"
                        this.notes.append(f"{exercise.id} {text}")
                    verdict = alone
        this.verdicts[exercise.id] = verdict
    this.cpu_s += apart.cpu_s
    return this


def _decide(sandbox: Sandbox, job: Job, public: _Round, hidden: _Round, usage: Mapping[str, float]) -> SubmissionResult:
    """Both rounds as one result, with what a person has to look at."""
    results = {name: ExerciseResult(verdict, hidden.verdicts.get(name)) for name, verdict in public.verdicts.items()}
    cpu_s = sum(this.transcript.cpu_s + this.cpu_s for this in (public, hidden))
    usage = {name: round(figure, 3) for name, figure in {**usage, "cpu_s": cpu_s}.items()}
    notes = (*job.notes, *hidden.notes, *disguises(job, results), *doubts(results))
    cells, tier = public.transcript.cells, sandbox.tier.name
    return SubmissionResult(job.key, job.lab, job.student, results, cells, notes, tier, usage)


def _exercises_in(steps: Sequence[Step]) -> list[Exercise]:
    return [exercises.find(name) for name in dict.fromkeys(map(exercise_of, steps)) if name is not None]


def _steps_again(
    steps: Sequence[Step], case_sets: Mapping[str, CaseSet], cells: Mapping[str, CellResult]
) -> list[Step]:
    """The cells again, less those that did not end, and the exercises that there are cases for."""
    steps = [
        step
        for step in steps
        if (isinstance(step, RunCode) and not cells[step.cell_id].skipped) or exercise_of(step) in case_sets
    ]
    last = max((index for index, step in enumerate(steps) if exercise_of(step)), default=-1)
    return steps[: last + 1]
