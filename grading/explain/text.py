"""An explanation as text for a terminal: the verdicts, the failing cases with their trees, the student's cells.

What is shown is found by other modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from grading.course import Course
from grading.explain.cases import UNKNOWN, FailingCase
from grading.explain.submission import ExerciseFailures
from grading.explain.tree_text import lines_of
from grading.intake.store import archived_path
from grading.submissions import Prepared
from grading.supervisor.result import SubmissionResult
from grading.terminal import lines_in
from labkit.check.points import with_points
from labkit.check.text import mark_of
from labkit.check.verdict import Verdict
from labkit.spec import Exercise
from labkit.units import by_name, of_limit

MAX_CASES = 5


def submission_lines(
    course: Course, prepared: Prepared, result: SubmissionResult | None, result_path: Path
) -> Iterator[str]:
    """Where the submission and all that was made of it lies, and what the run took."""
    lab, student = prepared.job.lab, prepared.job.student
    yield f"{student}, {lab}"
    places = {
        "submitted": course.submitted(lab, student),
        "kept": archived_path(course, lab, prepared.job.attempt),
        "result": result_path,
        "graded": course.autograded(lab, student),
        "feedback": course.feedback(lab, student),
    }
    for label, path in places.items():
        yield from labelled(label, f"{path}{'' if path.is_file() else ' (not there)'}")
    if result is not None:
        yield from labelled("isolation", result.isolation)
        if result.usage:
            yield from labelled("usage", ", ".join(by_name(name, value) for name, value in result.usage.items()))
    for note in result.notes if result else prepared.job.notes:
        yield from labelled("note", note)


def exercise_lines(
    exercise: Exercise, prepared: Prepared, result: SubmissionResult | None, failures: ExerciseFailures
) -> Iterator[str]:
    """The verdicts on an exercise, its failing cases, and the student's cells."""
    found = result.exercises[exercise.id] if result else None
    yield f"== {exercise.id}  {exercise.title}"
    if found is None:
        yield from labelled("outcome", "not graded yet")
    else:
        cell = next(cell for cell in prepared.template.exercises if cell.exercise == exercise.id)
        points = f"{found.score * cell.worth:g} of {cell.worth:g}{' extra' if cell.extra else ''}"
        yield from labelled("outcome", f"{mark_of(found.deciding)} {found.outcome}, {points} points")
        yield from _verdict("public", with_points(found.public, exercise.points, cell.worth))
        if found.hidden is not None:
            yield from _verdict("hidden", with_points(found.hidden, exercise.points, cell.worth))
        else:
            yield from labelled("hidden", "not run for the grade, since the public cases do not pass")
    if failures.run_again:
        yield from labelled("run again", f"{failures.run_again}; {len(failures.public) + len(failures.hidden)} fail")
    for reading in failures.readings:
        unit = "_bytes" if reading.name.endswith("_bytes") else ""
        claimed, measured = by_name(unit, reading.claimed), by_name(unit, reading.measured)
        yield from labelled(
            "witness", f"{reading.name}: the student's process said {claimed}, our measure is {measured}"
        )
    for what, cases in (("public", failures.public), ("hidden", failures.hidden)):
        for case in cases[:MAX_CASES]:
            yield from _case(what, case)
        if len(cases) > MAX_CASES:
            yield from labelled("", f"and {len(cases) - MAX_CASES} more {what} cases that fail")
    yield from _code(exercise, prepared, result)


def _verdict(what: str, verdict: Verdict) -> Iterator[str]:
    # The headline for a hidden case is the student's too, and does not count.
    count = f"{verdict.n_passed} of {verdict.n_cases} cases pass; " if what == "hidden" and not verdict.passed else ""
    yield from labelled(what, count + verdict.headline.removeprefix(f"{verdict.exercise}: "))
    # Where a row names a case, the case is shown below with all its rows.
    if not verdict.passed and not any(label == "case" for label, _ in verdict.rows):
        for label, text in verdict.rows:
            yield from labelled(f"  {label}", text)
    if verdict.hint:
        yield from labelled("  hint", verdict.hint)
    for budget in verdict.budgets:
        yield from labelled("  measured", of_limit(*budget))


def _case(what: str, failing: FailingCase) -> Iterator[str]:
    yield f"-- {what} case {failing.n} of {failing.n_cases}" + (f": {failing.case}" if failing.case else "")
    yield from _tree_lines("inputs", lines_of(failing.inputs))
    if failing.expected is not None:
        yield from _tree_lines("expected", lines_of(failing.expected, failing.place))
    if failing.got is not UNKNOWN:
        yield from _tree_lines("got", lines_of(failing.got, failing.place))
    for label, text in failing.rows:
        if label != "case":
            is_first = failing.got is not UNKNOWN and label in ("expected", "got")
            yield from labelled(f"first {label}" if is_first else label, text)
    if failing.hint:
        yield from labelled("hint", failing.hint)
    for budget in failing.budgets:
        yield from labelled("measured", of_limit(*budget))
    others = {
        name: value for name, value in failing.measured.items() if name not in {budget[0] for budget in failing.budgets}
    }
    if others:
        yield from labelled("also", ", ".join(by_name(name, value) for name, value in others.items()))


def _tree_lines(label: str, lines: Sequence[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield from labelled("" if index else label, line)


def _code(exercise: Exercise, prepared: Prepared, result: SubmissionResult | None) -> Iterator[str]:
    """The answer's cells as submitted, and the student's other cells that speak of its names."""
    ids = {answer.cell or exercise.id for answer in exercise.answers}
    names = "|".join(re.escape(answer.name) for answer in exercise.answers)
    binds = re.compile(rf"\b(?:(?:def|class)\s+(?:{names})\b|(?:{names})\s*=)")
    for cell in prepared.merged.cells:
        if cell.id not in ids and not (cell.origin == "added" and binds.search(cell.source)):
            continue
        blank = " (left as it was given)" if cell.origin == "template" else ""
        yield f"-- cell {cell.id}{blank}"
        yield from ("  | " + line for line in lines_in(cell.source))
        ran = result.cells.get(cell.id) if result else None
        if ran is not None and ran.error:
            yield from labelled("error", ran.error)


def labelled(label: str, text: str) -> list[str]:
    """A label and its text, of which further lines are indented as far."""
    first, *rest = lines_in(text)
    return [f"  {label:<16}{first}".rstrip(), *(" " * 18 + line for line in rest)]
