"""Grade one submission: draw the hidden cases, have the worker run everything, judge what came back.

Where the job runs, and where its result goes, is the caller's business.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from grading.hidden import Secret, hidden_of
from grading.isolation.sandbox import Sandbox
from grading.supervisor.cases import UNMEASURED, CaseInputs, CaseSet, Transcript
from grading.supervisor.job import Job
from grading.supervisor.kernels import (
    cells_before,
    is_compiled,
    is_rerun,
    judge_rerun,
    rerun,
    without_compiled,
)
from grading.supervisor.ranks.schedule import Ranked, is_ranked, only_needed, without_ranked
from grading.supervisor.result import CellResult, ExerciseResult, SubmissionResult
from grading.supervisor.session import run_steps
from grading.supervisor.witness import Reading, objection, probes_for
from grading.worker.protocol.steps import RunCode, Step, exercise_of
from labkit import exercises
from labkit.check.api import refusal
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.forbids import find_disguise, find_forbidden
from labkit.observe import make_inputs, public_seed
from labkit.oracles import oracle_of
from labkit.spec import STUB_MESSAGE, CaseRun, Exercise, MiB, Observation, Trouble


def grade_job(sandbox: Sandbox, job: Job) -> SubmissionResult:
    """Run and judge a job. Raises InfrastructureFault when the trouble is ours: then there is no result.

    The hidden cases have a run of their own, after everything that a student will read has been written down: what
    an answer sees of them, it cannot carry back into a cell's output or an error's text.
    """
    secret = Secret(job.course_key, job.lab, job.student, job.attempt)
    asked = {exercise.id: exercise for exercise in map(exercises.find, _exercises_in(job.steps))}
    public = {name: public_cases(exercise) for name, exercise in asked.items()}
    began = time.monotonic()
    transcript = run_steps(sandbox, without_ranked(job.steps), public)
    in_ranks = Ranked(sandbox, job.steps, transcript)
    shown = {}
    for name, exercise in asked.items():
        cases = public[name]

        def judged(found: Transcript, exercise: Exercise = exercise, cases: CaseSet = cases) -> Verdict:
            runs = _explained(exercise, found.exercises[exercise.id], transcript.cells)
            return _guarded(exercise, lambda: _judge_public(exercise, job, runs, len(cases.inputs)))

        shown[name] = in_ranks.verdict(exercise, cases, judged) if is_ranked(exercise) else judged(transcript)
    hidden = {name: hidden_cases(asked[name], secret) for name, verdict in shown.items() if verdict.score > 0}
    second = _second_run(without_ranked(job.steps), hidden, transcript.cells)
    unseen = run_steps(sandbox, second, hidden)
    in_ranks.begin_again()
    results: dict[str, ExerciseResult] = {}
    looks: list[str] = []
    cpu_s = 0.0
    for name, exercise in asked.items():
        verdict = None
        if name in hidden:
            cases = hidden[name]

            def judged(found: Transcript, exercise: Exercise = exercise, cases: CaseSet = cases) -> Verdict:
                verdict = _guarded(exercise, lambda: _judge_hidden(exercise, found, cases))
                has_to_prove_it = verdict.score > 0 and is_rerun(oracle_of(exercise.id))
                return _rerun(sandbox, exercise, job, found, cases, secret) if has_to_prove_it else verdict

            verdict = in_ranks.verdict(exercise, cases, judged) if is_ranked(exercise) else judged(unseen)
            if verdict.outcome == "suspected" and cases.is_sealed and not is_ranked(exercise):
                # Large things that other cells left behind are no reason for doubt: once more, without them.
                by_itself = run_steps(sandbox, only_needed(job.steps, exercise), {name: cases})
                alone = judged(by_itself)
                cpu_s += by_itself.cpu_s
                if alone.score > 0:
                    if not _is_unmeasured(unseen.exercises[name]):
                        looks.append(f"{name} passes without the other cells, but not with them: {_told(verdict)}")
                    verdict = alone
        results[name] = ExerciseResult(shown[name], verdict)
    cpu_s += transcript.cpu_s + unseen.cpu_s + in_ranks.cpu_s
    usage = {"wall_s": round(time.monotonic() - began, 3), "cpu_s": round(cpu_s, 3)}
    notes = (*job.notes, *looks, *_disguises(job, results), *_doubts(results))
    return SubmissionResult(job.key, job.lab, job.student, results, transcript.cells, notes, sandbox.tier.name, usage)


def _is_unmeasured(runs: Sequence[Observation]) -> bool:
    """Whether a case could not be measured, as where a notebook still holds its models; no sign of anything."""
    return any(run.trouble is not None and run.trouble.kind == UNMEASURED for run in runs)


def _disguises(job: Job, results: Mapping[str, ExerciseResult]) -> list[str]:
    """Where an answer with points may have called what is forbidden, for a person to judge; most of them did not."""
    asked = [exercises.find(name) for name, result in results.items() if result.score > 0]
    found = [(each.id, find_disguise(job.program, _names_of(each), each.forbids)) for each in asked]
    text = "forbids calls by name, and its answer finds something under a name that its text does not show"
    return [f"{name} {text} ({place.name}, {place.line})" for name, place in found if place]


def _doubts(results: Mapping[str, ExerciseResult]) -> list[str]:
    """What a person has to look at, for the submission's notes."""
    return [
        f"{name} is suspected: {_told(result.deciding)}"
        for name, result in results.items()
        if result.outcome == "suspected"
    ]


def _told(verdict: Verdict) -> str:
    return "; ".join(text for _, text in verdict.rows)


def _exercises_in(steps: Sequence[Step]) -> list[str]:
    return [name for name in map(exercise_of, steps) if name is not None]


def _second_run(steps: Sequence[Step], hidden: Mapping[str, CaseSet], cells: Mapping[str, CellResult]) -> list[Step]:
    """The cells again, less those that did not end, and the exercises that have come this far."""
    steps = [
        step
        for step in steps
        if (isinstance(step, RunCode) and not cells[step.cell_id].skipped) or exercise_of(step) in hidden
    ]
    last = max((index for index, step in enumerate(steps) if exercise_of(step)), default=-1)
    return steps[: last + 1]


def public_cases(exercise: Exercise) -> CaseSet:
    return CaseSet(
        tuple(
            CaseInputs(case, make_inputs(exercise, case, public_seed(exercise.id, index)))
            for index, case in enumerate(exercise.public)
        )
    )


def hidden_cases(exercise: Exercise, secret: Secret) -> CaseSet:
    """The hidden cases; after them, when everything has been used once, those whose memory is bounded from outside."""
    hidden, rng = hidden_of(exercise.id), secret.draw(exercise.id)
    limits = {budget.name: budget.limit for budget in oracle_of(exercise.id).budgets}
    cases = list(hidden.cases(rng))
    n_plain = len(cases)
    drawn = []
    for index, case in enumerate([*cases, *hidden.watched(rng)]):
        tree = make_inputs(exercise, case, secret.draw(exercise.id, f"inputs {index}").getrandbits(63))
        memory_limit_bytes = _limit(limits["peak_bytes"], CaseRun(case, tree)) if index >= n_plain else None
        drawn.append(CaseInputs(case, tree, memory_limit_bytes))
    return CaseSet(tuple(drawn), probes_for(oracle_of(exercise.id).budgets, rng), exercise.run.cpu_s)


def _limit(limit: object, run: CaseRun) -> float:
    return float(limit(run) if callable(limit) else limit)


def _judge_public(exercise: Exercise, job: Job, runs: Sequence[Observation], n_cases: int) -> Verdict:
    first_trouble = runs[0].trouble.kind if runs and runs[0].trouble else None
    found = find_forbidden(job.program, _names_of(exercise), exercise.forbids)
    if found and first_trouble not in ("unanswered", "missing", "type"):
        runs = [Observation(exercise.public[0], {}, trouble=refusal(found))]
    return judge(exercise, without_compiled(oracle_of(exercise.id)), runs, n_cases=n_cases)


def _names_of(exercise: Exercise) -> list[str]:
    return [answer.name for answer in exercise.answers]


def _judge_hidden(exercise: Exercise, unseen: Transcript, cases: CaseSet) -> Verdict:
    """A hidden verdict keeps its rows for the instructor; its headline says that the public cases pass."""
    oracle, runs = without_compiled(oracle_of(exercise.id)), unseen.exercises[exercise.id]
    verdict = judge(exercise, oracle, runs, hidden_of(exercise.id).expect, n_cases=len(cases.inputs))
    objections = _objections(runs, cases, unseen.readings.get(exercise.id, ()))
    if objections:
        headline = f"{exercise.id}: a measure does not agree with ours, and a person will look at it."
        return replace(verdict, outcome="suspected", score=0.0, headline=headline, rows=objections, hint=None)
    if verdict.score > 0:
        return verdict
    headline = f"{exercise.id}: the public cases pass, but not every hidden one does."
    return replace(verdict, headline=headline, hint=verdict.hint or f"Think of {oracle.axis}.")


def _rerun(
    sandbox: Sandbox, exercise: Exercise, job: Job, found: Transcript, cases: CaseSet, secret: Secret
) -> Verdict:
    """The verdict on an answer of kernels: by what these do when they run again, from their text alone.

    What that takes is added to what was found.
    """
    oracle, n_cases = oracle_of(exercise.id), sum(not inputs.bounds_memory for inputs in cases.inputs)
    again = rerun(
        sandbox,
        exercise,
        found.exercises[exercise.id][:n_cases],
        found.tapes.get(exercise.id, ())[:n_cases],
        cells_before(job.steps, exercise.id),
        lambda index: secret.draw(exercise.id, f"replay {index}").getrandbits(63),
        is_compiled(oracle),
    )
    found.cpu_s += again.cpu_s
    return _guarded(exercise, lambda: judge_rerun(exercise, oracle, hidden_of(exercise.id).expect, again, n_cases))


def _objections(
    runs: Sequence[Observation], cases: CaseSet, readings: Sequence[Reading]
) -> tuple[tuple[str, str], ...]:
    """What speaks against the figures of the student's process, as a verdict's rows."""
    problems = []
    for inputs, run in zip(cases.inputs, runs, strict=False):
        if run.trouble and run.trouble.kind == UNMEASURED:
            problems.append(run.trouble.text)
        elif inputs.memory_limit_bytes is not None and run.trouble and run.trouble.kind in ("memory", "raised", "died"):
            problems.append(
                f"with its memory held from outside to {inputs.memory_limit_bytes / MiB:.1f} MiB and some, "
                f"it did not go through: {run.trouble.text}"
            )
    limits = iter([inputs.memory_limit_bytes for inputs in cases.inputs if inputs.memory_limit_bytes is not None])
    found = [objection(reading, math.inf if reading.exact else next(limits)) for reading in readings]
    problems += filter(None, found)
    return tuple(("problem", text) for text in problems)


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
