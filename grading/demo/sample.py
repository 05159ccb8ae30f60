"""Put a sample class into a course: every file under submitted/, the due date, and a penalty for being late.

The same seed makes the same class. Returns what each file should earn, which is how the demo checks itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from grading.course import Course
from grading.demo.answers import LabAnswers, answers_of
from grading.demo.handins import DemoSubmission
from grading.demo.roster import DemoStudent
from grading.intake.timestamp import TIMESTAMP
from grading.nbgrader_api import load_config

SEED = 2026
DUE = datetime(2026, 3, 2, 12)
PENALTY_CONFIG = """

# Ten percent of the points for every day that has begun.
import math  # noqa: E402

from nbgrader.plugins import LateSubmissionPlugin  # noqa: E402


class TenPercentADay(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score * min(1.0, 0.1 * math.ceil(total_seconds_late / 86400))


c.AssignLatePenalties.plugin_class = TenPercentADay
"""

Expected = dict[tuple[str, str], DemoSubmission]
"""What was handed in, by lab and student."""


def fill_course(course: Course, students: list[DemoStudent], seed: int = SEED) -> Expected:
    """Write the submissions of all labs, which have to be released."""
    labs = course.labs()
    _add_due_dates(course, labs)
    expected: Expected = {}
    for lab in labs:
        answers = answers_of(course, lab)
        for student in students:
            if lab == labs[-1] and student.skips_last:
                continue
            way = student.in_last if lab == labs[-1] and student.in_last else student.does
            # A generator of their own: one student more or less changes nobody else's work.
            made = way(answers, Random(f"{seed} {lab} {student.name}"))
            _hand_in(course, answers, student, made)
            expected[lab, student.name] = made
    return expected


def _hand_in(course: Course, lab: LabAnswers, student: DemoStudent, made: DemoSubmission) -> None:
    path = course.submitted(lab.lab, student.name)
    path.parent.mkdir(parents=True)
    path.write_text(made.text, encoding="utf-8")
    when = DUE + timedelta(days=student.days_late, hours=-1)
    (path.parent / TIMESTAMP).write_text(f"{when:%Y-%m-%d %H:%M:%S} UTC", encoding="utf-8")


def _add_due_dates(course: Course, labs: list[str]) -> None:
    with course.config.open("a", encoding="utf-8") as file:
        file.write(PENALTY_CONFIG)
    folder = CourseDirectory(config=load_config(course))
    with Gradebook(folder.db_url, folder.course_id) as gradebook:
        for lab in labs:
            gradebook.update_or_create_assignment(lab, duedate=DUE)
