"""Find what is to be explained: a student's submission, the result that its grade was made from, the failing cases.

They come from the stored verdicts, or from a run of the answers made now. No grade changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grading.course import Course
from grading.errors import UserError
from grading.explain.cases import FailingCase, cases_of, failing_cases, run_again, stored_failure
from grading.files import Unreadable
from grading.isolation import select_tier
from grading.isolation.faults import InfrastructureFault
from grading.log import Log
from grading.log.grades import last_grades
from grading.submissions import Prepared, prepare
from grading.supervisor.job import Job
from grading.supervisor.result import SubmissionResult
from grading.supervisor.witness import Reading
from grading.worker.protocol.steps import ServeExercise
from labkit import exercises


@dataclass(frozen=True)
class ExerciseFailures:
    """An exercise's failing public and hidden cases; what was run again, if anything was; the witnesses' figures."""

    public: list[FailingCase]
    hidden: list[FailingCase]
    run_again: str | None = None
    readings: tuple[Reading, ...] = ()


def find_submission(course: Course, lab: str, student: str) -> Prepared:
    """The student's submission as it is under submitted/ now. Raises UserError where there is none to be explained."""
    course.expect_handed_in(lab, [student])
    try:
        return prepare(course, lab, lab, student)
    except Unreadable as error:
        raise UserError(f"nothing to explain for {student}: {error}", "collect a notebook of theirs") from error


def exercises_of(prepared: Prepared) -> list[str]:
    """The ids of the exercises that this submission is judged on, in order."""
    return [step.exercise_id for step in prepared.job.steps if isinstance(step, ServeExercise)]


def result_path_of(course: Course, prepared: Prepared) -> tuple[Path, str | None]:
    """Where the result of this very submission is, also of an earlier grader; and a remark on it, if one is due."""
    job = prepared.job
    entry = last_grades(Log(course).entries(), job.lab).get((job.lab, job.student))
    if entry is None or prepared.result_path.is_file():
        return prepared.result_path, None
    if entry.facts.get("submission") != job.attempt:
        return prepared.result_path, f"the grade that was given (entry {entry.n} of the log) is of another submission"
    then = "the grader or the lab has changed since this was graded: this is the verdict from then"
    return course.result(job.lab, str(entry.facts.get("job"))), then


def stored_failures(prepared: Prepared, names: Sequence[str], result: SubmissionResult) -> dict[str, ExerciseFailures]:
    """By exercise, the failing cases that the stored verdicts name: at most one public and one hidden."""
    failures = {}
    for name in names:
        exercise, stored = exercises.find(name), result.exercises[name]
        public, hidden = cases_of(prepared.job, name)
        failures[name] = ExerciseFailures(
            stored_failure(exercise, stored.public, public, is_hidden=False),
            stored_failure(exercise, stored.hidden, hidden, is_hidden=True) if stored.hidden else [],
        )
    return failures


def fresh_failures(prepared: Prepared, names: Sequence[str], isolation: str) -> dict[str, ExerciseFailures]:
    """By exercise, every failing case of a run made now. Raises UserError where the answers cannot be run."""
    case_sets = {name: cases_of(prepared.job, name) for name in names}
    public, hidden = ({name: both[which] for name, both in case_sets.items()} for which in (0, 1))
    try:
        on_public, on_hidden = run_again(_only(prepared.job, names), select_tier(isolation), public, hidden)
    except InfrastructureFault as error:
        raise UserError(f"the answers could not be run again ({error})", "look at `doctor`, and try again") from error
    failures = {}
    for name in names:
        exercise, n_public, n_hidden = exercises.find(name), len(public[name].inputs), len(hidden[name].inputs)
        runs, more = on_public.exercises[name], on_hidden.exercises[name]
        failures[name] = ExerciseFailures(
            failing_cases(exercise, runs, n_public, is_hidden=False),
            failing_cases(exercise, more, n_hidden, is_hidden=True),
            f"{len(runs)} of {n_public} public and {len(more)} of {n_hidden} hidden cases",
            tuple(on_hidden.readings.get(name, ())),
        )
    return failures


def _only(job: Job, names: Sequence[str]) -> Job:
    """The job without the exercises that were not asked for."""
    steps = tuple(step for step in job.steps if not isinstance(step, ServeExercise) or step.exercise_id in names)
    return replace(job, steps=steps)
