"""Judge what came back of a submission's runs: public cases, hidden cases, kernels that run again; and say what is odd.

Nothing is run here but kernels again. Which verdict counts is decided in `rounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress

from grading.hidden import Secret, hidden_of
from grading.isolation.sandbox import Sandbox
from grading.supervisor.cases import UNMEASURED, CaseSet
from grading.supervisor.job import Job
from grading.supervisor.kernels import (
    cells_before,
    fails_at_full_size,
    is_compiled,
    judge_rerun,
    rerun,
    without_compiled,
)
from grading.supervisor.own_time import verdict_limit
from grading.supervisor.result import CellResult, ExerciseResult
from grading.supervisor.transcript import Transcript
from grading.supervisor.witness import Reading, objection
from labkit import exercises
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.forbids import find_disguise, find_forbidden, refusal
from labkit.limits import OverLimit
from labkit.oracles import oracle_of
from labkit.spec import STUB_MESSAGE, Exercise, MiB, Observation, Tree, Trouble

MAX_ROW = 1000
"""Characters of a row of a verdict."""


def judge_public(
    exercise: Exercise, job: Job, found: Transcript, cells: Mapping[str, CellResult], n_cases: int
) -> Verdict:
    """cells: how the notebook's cells ended, for an answer that is missing."""

    observed = found.exercises[exercise.id]

    def judged() -> Verdict:
        runs = _with_failed_cell(exercise, observed, cells)
        first_trouble = runs[0].trouble.kind if runs and runs[0].trouble else None
        forbidden = find_forbidden(job.program, _names_of(exercise), exercise.forbids)
        if forbidden and first_trouble not in ("unanswered", "missing", "type"):
            runs = [Observation(exercise.public[0], {}, trouble=refusal(forbidden))]
        return judge(exercise, without_compiled(oracle_of(exercise.id)), runs, n_cases=n_cases)

    return _guarded(exercise, judged)


def judge_hidden(exercise: Exercise, found: Transcript, cases: CaseSet) -> Verdict:
    """A hidden verdict keeps its rows for the instructor; its headline says that the public cases pass."""

    def judged() -> Verdict:
        oracle, runs = without_compiled(oracle_of(exercise.id)), found.exercises[exercise.id]
        verdict = judge(exercise, oracle, runs, hidden_of(exercise.id).expect, n_cases=cases.n_cases)
        objections = _objections(runs, cases, found.readings.get(exercise.id, ()))
        if objections:
            headline = f"{exercise.id}: a measure does not agree with ours, and a person will look at it."
            return replace(verdict, outcome="suspected", score=0.0, headline=headline, rows=objections, hint=None)
        if verdict.score > 0 or fails_at_full_size(exercise, verdict):
            return verdict
        headline = f"{exercise.id}: the public cases pass, but not every hidden one does."
        return replace(verdict, headline=headline, hint=verdict.hint or f"Think of {oracle.axis}.")

    return _guarded(exercise, judged)


def judge_run_again(
    sandbox: Sandbox,
    exercise: Exercise,
    job: Job,
    found: Transcript,
    cases: CaseSet,
    secret: Secret,
    public_logs: Sequence[Tree],
) -> Verdict:
    """The verdict on an answer of kernels: by what these do when they run again, from their text alone.

    What that takes is added to what was found. public_logs: what the public cases launched; hints go by nothing else.
    """
    oracle = oracle_of(exercise.id)
    is_logged = [not inputs.bounds_memory for inputs in cases.inputs]
    n_cases = sum(is_logged[: cases.n_cases])
    again = rerun(
        sandbox,
        exercise,
        list(compress(found.exercises[exercise.id], is_logged)),
        list(compress(found.launch_logs.get(exercise.id, ()), is_logged)),
        public_logs,
        cells_before(job.steps, exercise.id),
        lambda index: secret.draw(exercise.id, f"replay {index}").getrandbits(63),
        is_compiled(oracle),
    )
    found.cpu_s += again.cpu_s
    expect = hidden_of(exercise.id).expect
    return _guarded(exercise, lambda: judge_rerun(exercise, oracle, expect, again, n_cases, public_logs))


def is_unmeasured(runs: Sequence[Observation]) -> bool:
    """Whether a case could not be measured, as where a notebook still holds its models; no sign of anything."""
    return any(run.trouble is not None and run.trouble.kind == UNMEASURED for run in runs)


def disguises(job: Job, results: Mapping[str, ExerciseResult]) -> list[str]:
    """Where an answer with points may have called what is forbidden, for a person to judge; most of them did not."""
    asked = [exercises.find(name) for name, result in results.items() if result.score > 0]
    found = [(each.id, find_disguise(job.program, _names_of(each), each.forbids)) for each in asked]
    text = "forbids calls by name, and its answer finds something under a name that its text does not show"
    return [f"{name} {text} ({place.name}, {place.line})" for name, place in found if place]


def doubts(results: Mapping[str, ExerciseResult]) -> list[str]:
    """What a person has to look at, for the submission's notes."""
    return [
        f"{name} is suspected: {reasons(result.deciding)}"
        for name, result in results.items()
        if result.outcome == "suspected"
    ]


def reasons(verdict: Verdict) -> str:
    """A verdict's rows in one line."""
    return "; ".join(text for _, text in verdict.rows)


def _names_of(exercise: Exercise) -> list[str]:
    return [answer.name for answer in exercise.answers]


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
    problems += filter(None, map(objection, readings))
    return tuple(("problem", text) for text in problems)


def _guarded(exercise: Exercise, judged: Callable[[], Verdict]) -> Verdict:
    """A result that the judge itself stumbles over earns nothing and is a person's to look at."""
    try:
        with verdict_limit():
            verdict = judged()
        # A case is ours, and known again by its words.
        rows = tuple((label, text if label == "case" else _cut(text)) for label, text in verdict.rows)
        return replace(verdict, rows=rows)
    except OverLimit as error:
        problem = f"judging what came back took more than {error}"
    except Exception as error:
        problem = type(error).__name__
    headline = f"{exercise.id}: this could not be judged, and a person will look at it."
    return Verdict(exercise.id, "suspected", 0.0, headline, (("problem", problem),))


def _cut(text: str) -> str:
    """A row's text, of a length that pages can take: names of what came back may stand in it."""
    return text if len(text) <= MAX_ROW else f"{text[:MAX_ROW]} ..."


def _with_failed_cell(
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
