"""What a written grade rests on besides the job's result: points, due date, time of submission, configuration.

When one of them changes, the same result is written again. Nothing is judged here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from nbgrader.api import Gradebook, MissingEntry

from grading.gradebook.course import Course
from grading.gradebook.work import Graded


@dataclass(frozen=True)
class Standing:
    """What the gradebook knows of a lab: its due date, and the students whose submissions have a row."""

    course: Course
    duedate: str
    students: frozenset[str]

    @classmethod
    def of(cls, course: Course, lab: str, db_url: str) -> Standing:
        """Read it from the gradebook; nothing of it is there before the first release."""
        with Gradebook(db_url) as gradebook:
            try:
                assignment = gradebook.find_assignment(lab)
            except MissingEntry:
                return cls(course, "", frozenset())
            students = frozenset(submission.student_id for submission in assignment.submissions)
            return cls(course, str(assignment.duedate), students)

    def of_student(self, work: Graded) -> str:
        """One digest of all that this student's written grade rests on."""
        path = self.course.submitted(work.job.lab, work.job.student).with_name("timestamp.txt")
        timestamp = path.read_text() if path.is_file() else ""
        points = [(cell.id, cell.points) for cell in work.template.cells if cell.points]
        parts = (self.duedate, timestamp, points, self.course.config.read_text())
        return hashlib.sha256(repr(parts).encode()).hexdigest()
