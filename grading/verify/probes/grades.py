"""What nbgrader's gradebook says, to be compared with what the grader found."""

from __future__ import annotations

from nbgrader.api import Gradebook, MissingEntry

from grading.course import Course


def scores(course: Course, lab: str) -> dict[str, dict[str, float]]:
    """The points in the gradebook by student and cell."""
    found: dict[str, dict[str, float]] = {}
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        try:
            submissions = gradebook.assignment_submissions(lab)
        except MissingEntry:
            return {}
        for submission in submissions:
            grades = (grade for notebook in submission.notebooks for grade in notebook.grades)
            found[submission.student_id] = {grade.cell.name: float(grade.score or 0) for grade in grades}
    return found
