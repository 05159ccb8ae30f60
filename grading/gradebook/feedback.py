"""The feedback pages of the graded submissions of a lab.

A page stays that is newer than its notebook and than the gradebook, which has the points and comments of persons.
"""

from __future__ import annotations

from grading.course import Course
from grading.errors import UserError
from grading.nbgrader_api import NbgraderFailed, expect_success, open_api
from grading.terminal import progress_bar
from labkit.limits import OverLimit, time_limit

PAGE_S = 60.0
"""CPU time for one page. An honest notebook takes half a second, the worst whose texts were cut half a minute."""


def make_feedback(course: Course, lab: str) -> int:
    """Make the pages that are missing or may say something else by now; returns how many there are."""
    students = [student for student in course.students(lab) if course.autograded(lab, student).is_file()]
    api = open_api(course)
    failed = []
    with progress_bar() as bar:
        for student in bar.track(students, description="feedback"):
            if _is_new(course, lab, student):
                continue
            try:
                with time_limit(wall_s=None, cpu_s=PAGE_S):
                    expect_success(course, api.generate_feedback(lab, student, force=True))
            except (NbgraderFailed, OverLimit) as error:
                failed.append(f"{student} ({error})")
    if failed:
        raise UserError(f"{len(failed)} feedback pages could not be made", "; ".join(failed))
    return len(students)


def _is_new(course: Course, lab: str, student: str) -> bool:
    """A gradebook on a server does not say when it was changed last: then no page is."""
    page, database = course.feedback(lab, student), course.root / "gradebook.db"
    if not page.is_file() or not database.is_file():
        return False
    sources = (course.autograded(lab, student), database)
    return page.stat().st_mtime_ns >= max(path.stat().st_mtime_ns for path in sources)
