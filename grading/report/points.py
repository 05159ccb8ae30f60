"""Read points out of nbgrader's gradebook, which alone decides what counts.

Manual grades, extra credit and late penalties are in them. Nothing is written, and no database is made.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from nbgrader.api import Assignment, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory

from grading.course import Course
from grading.gradebook.reading import open_for_reading
from grading.nbgrader_api import load_config


@dataclass(frozen=True)
class CellPoints:
    """One cell of one student. `is_set` is false where neither the grader nor a person has given points."""

    score: float
    is_set: bool
    by_hand: bool
    waiting: bool


@dataclass(frozen=True)
class StudentPoints:
    """One student's points in one lab, by the cell's name.

    `until` (the extension's end) and `handed_in_at` are in UTC without a zone; `late_s` counts from the student's own
    due date.
    """

    cells: dict[str, CellPoints]
    penalty: float
    until: datetime.datetime | None = None
    handed_in_at: datetime.datetime | None = None
    late_s: float = 0.0


@dataclass(frozen=True)
class LabPoints:
    """What the gradebook knows of a lab: the maximum of each cell in order, and each student's points."""

    maximum: dict[str, float] = field(default_factory=dict)
    students: dict[str, StudentPoints] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassPoints:
    """The whole gradebook: the course's name there, and the labs by name."""

    course_id: str
    labs: dict[str, LabPoints]

    def lab(self, name: str) -> LabPoints:
        return self.labs.get(name, LabPoints())


def read_points(course: Course) -> ClassPoints:
    """Everything in the gradebook; no labs where there is none yet. Raises UserError where its server is gone."""
    course_id = CourseDirectory(config=load_config(course)).course_id
    with open_for_reading(course) as gradebook:
        labs = gradebook.assignments if gradebook else ()
        return ClassPoints(course_id, {lab.name: LabPoints(_maximum(lab), _students(lab)) for lab in labs})


def _maximum(lab: Assignment) -> dict[str, float]:
    cells = (cell for notebook in lab.notebooks for cell in (*notebook.grade_cells, *notebook.task_cells))
    return {cell.name: float(cell.max_score) for cell in cells}


def _students(lab: Assignment) -> dict[str, StudentPoints]:
    return {submission.student_id: _submitted(submission) for submission in lab.submissions}


def _submitted(submission: SubmittedAssignment) -> StudentPoints:
    cells = {
        grade.name: CellPoints(
            score=float(grade.score),
            is_set=grade.auto_score is not None or grade.manual_score is not None,
            by_hand=grade.manual_score is not None,
            waiting=bool(grade.needs_manual_grade),
        )
        for notebook in submission.notebooks
        for grade in notebook.grades
    }
    penalty = sum(float(notebook.late_submission_penalty or 0.0) for notebook in submission.notebooks)
    until = submission.duedate if submission.extension else None
    return StudentPoints(cells, penalty, until, submission.timestamp, float(submission.total_seconds_late))
