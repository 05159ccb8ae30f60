"""nbgrader's feedback pages for the graded submissions of a lab. A page that is newer than its notebook stays."""

from __future__ import annotations

from grading.course import Course
from grading.errors import UserError
from grading.nbgrader_api import NbgraderFailed, expect_success, open_api
from grading.terminal import progress_bar
from labkit.limits import OverLimit, time_limit

PAGE_S = 60.0
"""CPU time for one page. One of an honest notebook takes 2 s, and of the worst whose texts were cut half a minute."""


def make_feedback(course: Course, lab: str) -> int:
    """Make the pages that are missing or older than their graded notebook; returns how many there are now."""
    students = [student for student in course.students(lab) if course.autograded(lab, student).is_file()]
    api = open_api(course)
    failed = []
    with progress_bar() as bar:
        for student in bar.track(students, description="feedback"):
            page, graded = course.feedback(lab, student), course.autograded(lab, student)
            if page.is_file() and page.stat().st_mtime_ns >= graded.stat().st_mtime_ns:
                continue
            try:
                with time_limit(wall_s=None, cpu_s=PAGE_S):
                    expect_success(course, api.generate_feedback(lab, student, force=True))
            except (NbgraderFailed, OverLimit) as error:
                failed.append(f"{student} ({error})")
    if failed:
        raise UserError(f"{len(failed)} feedback pages could not be made", "; ".join(failed))
    return len(students)
