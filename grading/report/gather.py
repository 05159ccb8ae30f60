"""Gather the record of a class: who is there from the folders, points from the gradebook, reasons from the results.

Nothing is run and nothing is written. What the gradebook says is the grade, also where a newer submission waits.
"""

from __future__ import annotations

import datetime
import re

from grading.course import Course
from grading.files import Unreadable
from grading.gradebook.extensions import Extension, Extensions, read_extensions
from grading.gradebook.provenance import recorded_basis
from grading.intake.roster import read_sections
from grading.pages import Whereabouts
from grading.rebuild import Template, TemplateCell
from grading.report.marks import mark_of
from grading.report.points import LabPoints, StudentPoints, read_points
from grading.report.record import (
    GRADED,
    NOT_GRADED,
    NOT_HANDED_IN,
    ClassRecord,
    Handin,
    Item,
    LabRecord,
    Mark,
)
from grading.results import read_result, read_ungraded
from grading.submissions import prepare
from labkit import exercises


def gather_record(course: Course) -> ClassRecord:
    """The record of a course. A student who handed in some lab stands in every lab that anybody handed in."""
    gradebook, extensions = read_points(course), read_extensions(course)
    names = {lab: {*course.students(lab), *gradebook.lab(lab).students} for lab in course.labs()}
    everybody = sorted(set().union(*names.values()))
    labs = []
    for lab in course.labs():
        template, points = course.template(lab), gradebook.lab(lab)
        items = items_of(template, points)
        handins = (
            [_handin(course, lab, student, items, points, extensions) for student in everybody] if names[lab] else []
        )
        labs.append(LabRecord(lab, _title(template), items, tuple(handins)))
    return ClassRecord(gradebook.course_id, tuple(labs), extensions.problems, read_sections(course))


def items_of(template: Template, points: LabPoints) -> tuple[Item, ...]:
    """What gives points in a lab, in order, each with a title: an exercise its own, a question by the text over it.

    What only the gradebook knows comes last.
    """
    items, here = [], Whereabouts()
    for cell in template.cells:
        if cell.cell_type == "markdown":
            here.read(cell.source)
        if cell.kind in ("check", "test", "manual"):
            items.append(_item(cell, here.name, points.maximum.get(cell.id, cell.points)))
    known = {item.cell for item in items}
    items += [Item(name, name, "other", name, most) for name, most in points.maximum.items() if name not in known]
    return tuple(items)


def _item(cell: TemplateCell, called: str, max_score: float) -> Item:
    """An exercise has a title; what has none is called after where it stands."""
    if cell.kind == "check":
        return Item(cell.exercise, cell.id, "exercise", exercises.find(cell.exercise).title, max_score, cell.extra)
    return Item(cell.id, cell.id, "test" if cell.kind == "test" else "manual", called or cell.id, max_score)


def _title(template: Template) -> str:
    """The notebook's first heading."""
    return next((heading for cell in template.cells for heading in _headings(cell)), template.lab)


def _headings(cell: TemplateCell) -> list[str]:
    if cell.cell_type != "markdown":
        return []
    return [line.lstrip("#").strip() for line in cell.source.splitlines() if re.match(r"#{1,6} ", line)]


def _handin(
    course: Course, lab: str, student: str, items: tuple[Item, ...], gradebook: LabPoints, extensions: Extensions
) -> Handin:
    is_there = (course.root / "submitted" / student / lab).is_dir()
    graded = _graded(course, lab, student, gradebook)
    without = read_ungraded(course, lab).get(student) if is_there else None
    if graded is None:
        if without:
            return _blank(student, lab, items, without["outcome"], None, without["reason"])
        if is_there:
            return _blank(student, lab, items, NOT_GRADED, None, "there is no grade yet: run `grade`")
        return _blank(student, lab, items, NOT_HANDED_IN, 0.0, None)
    key = recorded_basis(course.autograded(lab, student)).job
    result = read_result(course.result(lab, key)) if key else None
    marks = tuple(mark_of(item, graded.cells.get(item.cell), result) for item in items)
    page = course.feedback(lab, student)
    notes = result.notes if result else ("no stored result explains these points",)
    return Handin(
        student,
        lab,
        GRADED,
        marks,
        penalty=graded.penalty,
        outdated=_outdated(course, lab, student, key, without),
        notes=notes,
        feedback=page if page.is_file() else None,
        isolation=result.isolation if result else None,
        handed_in_at=graded.handed_in_at,
        late_s=graded.late_s,
        extended=_extended(graded.until, extensions.granted.get((lab, student))),
    )


def _extended(until: datetime.datetime | None, extension: Extension | None) -> str | None:
    """What the gradebook has; the reason, where the file is where that came from."""
    if until is None:
        return None
    reason = extension.reason if extension and extension.until == until else ""
    return f"due {until} UTC" + (f" ({reason})" if reason else "")


def _blank(
    student: str, lab: str, items: tuple[Item, ...], state: str, score: float | None, reason: str | None
) -> Handin:
    marks = tuple(Mark(item, score, state, reason) for item in items)
    return Handin(student, lab, state, marks, reason=reason)


def _graded(course: Course, lab: str, student: str, gradebook: LabPoints) -> StudentPoints | None:
    """The student's points, if this was graded: nbgrader also has rows for a try that failed."""
    found = gradebook.students.get(student)
    if found is None:
        return None
    is_set = any(points.is_set for points in found.cells.values())
    return found if is_set or course.autograded(lab, student).is_file() else None


def _outdated(course: Course, lab: str, student: str, key: str | None, without: dict[str, str] | None) -> str | None:
    """What to say of a grade that is not of the newest submission."""
    if without:
        return f"the newest submission has no grade ({without['reason']}); these points are of an earlier one"
    if key is None or not course.submitted(lab, student).is_file():
        return None
    try:
        newest = prepare(course, lab, lab, student).job.key
    except Unreadable as error:
        return f"the newest submission is not graded yet ({error}); these points are of an earlier one"
    return None if newest == key else "the submission or the grader has changed since it was graded: run `grade` again"
