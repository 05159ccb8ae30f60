"""`explain DIR LAB STUDENT [EXERCISE]`: a second look at one student, for the instructor's eyes.

It shows what students are not shown, the hidden cases too. By default it reads the stored verdicts, which tell of the
first failing case; with `--rerun` the answers run again, isolated, and every failing case is shown with what came
back. No grade changes.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grading.course import Course
from grading.errors import UserError
from grading.explain.cases import UNKNOWN, CaseLook, cases_of, looks_at, run_again, stored_look
from grading.explain.tree_text import lines_of
from grading.intake.store import archived_path
from grading.isolation import CHOICES, select_tier
from grading.isolation.sandbox import InfrastructureFault
from grading.log import Log
from grading.log.grades import last_grades
from grading.rebuild import Unreadable
from grading.results import read_result
from grading.submissions import Prepared, prepare
from grading.supervisor.result import SubmissionResult
from grading.supervisor.verdicts import Job
from grading.supervisor.witness import Reading
from grading.terminal import one_line, printable, say
from grading.worker.protocol.steps import ServeExercise
from labkit import exercises
from labkit.check import Verdict
from labkit.check.text import mark_of
from labkit.spec import Exercise
from labkit.units import by_name, of_limit

MAX_CASES = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path)
    parser.add_argument("lab", help='"02" or "02_float_formats"')
    parser.add_argument("student")
    parser.add_argument("exercise", nargs="?", help='only this exercise: "02-decode"')
    parser.add_argument("--rerun", action="store_true", help="run the answers again, isolated, and show every case")
    parser.add_argument("--isolation", choices=CHOICES, default="auto", help="for --rerun; default: auto")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    work = _work(course, lab, args.student)
    asked = [step.exercise_id for step in work.job.steps if isinstance(step, ServeExercise)]
    if args.exercise and args.exercise not in asked:
        raise UserError(f'lab {lab} has no exercise "{args.exercise}"', f"it has: {', '.join(asked) or 'none'}")
    names = [args.exercise] if args.exercise else asked
    path, remark = _stored_at(course, work)
    result = read_result(path)
    if result is None and not args.rerun:
        remedy = f"run `grade {args.folder} {args.lab} --student {args.student}` first, or add --rerun"
        raise UserError(one_line(f"this submission of {args.student} has no stored result"), remedy)
    looks = _again(work, names, args.isolation) if args.rerun else _stored(work, names, result)
    say("\n".join(_about(course, work, result, path)))
    if remark:
        say(_line("note", remark))
    for name in names:
        say("\n" + "\n".join(_exercise(exercises.find(name), work, result, looks[name])))
    return 0


@dataclass(frozen=True)
class Look:
    """An exercise's failing public and hidden cases; what was run again, if anything was; the witnesses' figures."""

    public: list[CaseLook]
    hidden: list[CaseLook]
    run_again: str | None = None
    readings: tuple[Reading, ...] = ()


Looks = dict[str, Look]


def _work(course: Course, lab: str, student: str) -> Prepared:
    try:
        return prepare(course, lab, lab, student)
    except Unreadable as error:
        known = ", ".join(course.students(lab)[:20]) or "nobody yet"
        problem = one_line(f"there is nothing to explain of {student}: {error}")
        raise UserError(problem, f"handed in: {one_line(known)}") from error


def _stored_at(course: Course, work: Prepared) -> tuple[Path, str | None]:
    """Where the result of this very submission is, also of an earlier grader; and what is to be said of it."""
    job = work.job
    entry = last_grades(Log(course).entries(), job.lab).get((job.lab, job.student))
    if entry is None or work.result_path.is_file():
        return work.result_path, None
    if entry.facts.get("submission") != job.attempt:
        return work.result_path, f"the grade that was given (entry {entry.n} of the log) is of another submission"
    then = "the grader or the lab has changed since this was graded: what is shown is the verdict of then"
    return course.result(job.lab, str(entry.facts.get("job"))), then


def _stored(work: Prepared, names: Sequence[str], result: SubmissionResult) -> Looks:
    looks: Looks = {}
    for name in names:
        exercise, found = exercises.find(name), result.exercises[name]
        public, hidden = cases_of(work.job, name)
        shown = stored_look(exercise, found.public, public, is_hidden=False)
        unseen = stored_look(exercise, found.hidden, hidden, is_hidden=True) if found.hidden else []
        looks[name] = Look(shown, unseen)
    return looks


def _again(work: Prepared, names: Sequence[str], isolation: str) -> Looks:
    case_sets = {name: cases_of(work.job, name) for name in names}
    public, hidden = ({name: both[which] for name, both in case_sets.items()} for which in (0, 1))
    try:
        shown, unseen = run_again(_only(work, names), select_tier(isolation), public, hidden)
    except InfrastructureFault as error:
        raise UserError(f"the answers could not be run again ({error})", "look at `doctor`, and try again") from error
    looks: Looks = {}
    for name in names:
        exercise, n_public, n_hidden = exercises.find(name), len(public[name].inputs), len(hidden[name].inputs)
        runs, more = shown.exercises[name], unseen.exercises[name]
        looks[name] = Look(
            looks_at(exercise, runs, n_public, is_hidden=False),
            looks_at(exercise, more, n_hidden, is_hidden=True),
            f"{len(runs)} of {n_public} public and {len(more)} of {n_hidden} hidden cases",
            tuple(unseen.readings.get(name, ())),
        )
    return looks


def _only(work: Prepared, names: Sequence[str]) -> Job:
    """The job without the exercises that were not asked for."""
    steps = tuple(step for step in work.job.steps if not isinstance(step, ServeExercise) or step.exercise_id in names)
    return replace(work.job, steps=steps)


def _about(course: Course, work: Prepared, result: SubmissionResult | None, stored: Path) -> Iterator[str]:
    lab, student = work.job.lab, work.job.student
    yield one_line(f"{student}, {lab}")
    places = {
        "submitted": course.submitted(lab, student),
        "kept": archived_path(course, lab, work.job.attempt),
        "result": stored,
        "graded": course.autograded(lab, student),
        "feedback": course.feedback(lab, student),
    }
    for label, path in places.items():
        yield _line(label, f"{path}{'' if path.is_file() else ' (not there)'}")
    if result is not None:
        yield _line("isolation", result.isolation)
        if result.usage:
            yield _line("usage", ", ".join(by_name(name, value) for name, value in result.usage.items()))
    for note in result.notes if result else work.job.notes:
        yield _line("note", note)


def _exercise(exercise: Exercise, work: Prepared, result: SubmissionResult | None, look: Look) -> Iterator[str]:
    found = result.exercises[exercise.id] if result else None
    yield f"== {exercise.id}  {exercise.title}"
    if found is None:
        yield _line("outcome", "not graded yet")
    else:
        points = f"{found.score * exercise.points:g} of {exercise.points:g}"
        yield _line("outcome", f"{mark_of(found.deciding)} {found.outcome}, {points} points")
        yield from _verdict("public", found.public)
        if found.hidden is not None:
            yield from _verdict("hidden", found.hidden)
        else:
            yield _line("hidden", "not run for the grade, since the public cases do not pass")
    if look.run_again:
        yield _line("run again", f"{look.run_again}; {len(look.public) + len(look.hidden)} fail")
    for reading in look.readings:
        unit = "_bytes" if reading.name.endswith("_bytes") else ""
        said, measured = by_name(unit, reading.claimed), by_name(unit, reading.measured)
        yield _line("witness", f"{reading.name}: the student's process said {said}, our measure is {measured}")
    for what, cases in (("public", look.public), ("hidden", look.hidden)):
        for case in cases[:MAX_CASES]:
            yield from _case(what, case)
        if len(cases) > MAX_CASES:
            yield _line("", f"and {len(cases) - MAX_CASES} more {what} cases that fail")
    yield from _code(exercise, work, result)


def _verdict(what: str, verdict: Verdict) -> Iterator[str]:
    # The headline for a hidden case is the student's too, and does not count.
    count = f"{verdict.n_passed} of {verdict.n_cases} cases pass; " if what == "hidden" and not verdict.passed else ""
    yield _line(what, count + verdict.headline.removeprefix(f"{verdict.exercise}: "))
    # Where a row names a case, the case is shown below with all its rows.
    if not verdict.passed and not any(label == "case" for label, _ in verdict.rows):
        for label, text in verdict.rows:
            yield _line(f"  {label}", text)
    if verdict.hint:
        yield _line("  hint", verdict.hint)
    for budget in verdict.budgets:
        yield _line("  measured", of_limit(*budget))


def _case(what: str, look: CaseLook) -> Iterator[str]:
    yield f"-- {what} case {look.n} of {look.n_cases}" + (f": {look.case}" if look.case else "")
    yield from _tree("inputs", lines_of(look.inputs))
    if look.expected is not None:
        yield from _tree("expected", lines_of(look.expected, look.place))
    if look.got is not UNKNOWN:
        yield from _tree("got", lines_of(look.got, look.place))
    for label, text in look.rows:
        if label != "case":
            yield _line(label if look.got is UNKNOWN or label not in ("expected", "got") else f"first {label}", text)
    if look.hint:
        yield _line("hint", look.hint)
    for budget in look.budgets:
        yield _line("measured", of_limit(*budget))
    others = {
        name: value for name, value in look.measured.items() if name not in {budget[0] for budget in look.budgets}
    }
    if others:
        yield _line("also", ", ".join(one_line(by_name(name, value)) for name, value in others.items()))


def _tree(label: str, lines: Sequence[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield _line("" if index else label, line)


def _code(exercise: Exercise, work: Prepared, result: SubmissionResult | None) -> Iterator[str]:
    """The answer's cells as submitted, and the student's other cells that speak of its names."""
    ids = {answer.cell or exercise.id for answer in exercise.answers}
    names = "|".join(re.escape(answer.name) for answer in exercise.answers)
    binds = re.compile(rf"\b(?:(?:def|class)\s+(?:{names})\b|(?:{names})\s*=)")
    for cell in work.merged.cells:
        if cell.id not in ids and not (cell.origin == "added" and binds.search(cell.source)):
            continue
        blank = " (left as it was given)" if cell.origin == "template" else ""
        yield f"-- cell {one_line(cell.id)}{blank}"
        yield from ("  | " + line for line in printable(cell.source).split("\n"))
        ran = result.cells.get(cell.id) if result else None
        if ran is not None and ran.error:
            yield _line("error", ran.error)


def _line(label: str, text: str) -> str:
    first, *rest = printable(text).split("\n")
    return "\n".join([f"  {label:<16}{first}".rstrip(), *(" " * 18 + line for line in rest)])
