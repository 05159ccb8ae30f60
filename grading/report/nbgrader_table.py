"""Grades in the columns of `nbgrader export`: a row for each lab and student, read from nbgrader's gradebook alone.

nbgrader's own command writes names without quotes, so that a comma in one moves the cells behind it, and what begins
with "=" as it is. Here texts are quoted and formulas disarmed; a student whose id would run as a formula or has
characters that are not shown is left out and named. As there, what was not handed in has 0 points.
"""

from __future__ import annotations

from collections.abc import Iterator

from nbgrader.api import Assignment, Gradebook, MissingEntry, Student

from grading.course import Course
from grading.errors import UserError
from grading.gradebook.reading import open_for_reading
from grading.report.csv_table import text
from grading.report.exported import Exported, as_rows, cannot_stand, remarks_on
from grading.report.record import ClassRecord

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)


def as_nbgrader(course: Course, record: ClassRecord) -> Exported:
    """The file's text, of the record's labs and, where it is of a section, its students.

    Raises UserError where there is no gradebook yet.
    """
    labs, rows, left_out = {lab.lab for lab in record.labs}, [COLUMNS], set()
    with open_for_reading(course) as gradebook:
        if gradebook is None:
            raise UserError("nobody has handed in anything yet", "export when there are grades")
        students = sorted(gradebook.students, key=lambda student: student.id)
        for lab in sorted(gradebook.assignments, key=lambda lab: lab.name):
            for student in students if lab.name in labs else ():
                if not record.has(student.id):
                    continue
                if cannot_stand(student.id):
                    left_out.add(student.id)
                    continue
                rows.append(tuple(_row(gradebook, lab, student)))
    why = "the id looks like a formula or has invisible characters"
    remarks = remarks_on(record, sorted(left_out), why)
    return Exported(as_rows(rows), (*remarks, "what was not handed in has 0 points here, as in nbgrader's own export"))


def _row(gradebook: Gradebook, lab: Assignment, student: Student) -> Iterator[str]:
    timestamp: object = None
    raw = penalty = 0.0
    try:
        submission = gradebook.find_submission(lab.name, student.id)
        timestamp, raw, penalty = submission.timestamp, submission.score, submission.late_submission_penalty
    except MissingEntry:
        pass
    yield text(lab.name)
    yield from map(_text, (lab.duedate, timestamp))
    yield student.id
    yield from map(_text, (student.last_name, student.first_name, student.email))
    yield from map(str, (raw, penalty, max(0.0, raw - penalty), lab.max_score))


def _text(value: object) -> str:
    return "" if value is None else text(str(value))
