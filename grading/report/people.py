"""What nbgrader's gradebook knows of the students beside their grades: names, mail addresses, platform ids."""

from __future__ import annotations

from dataclasses import dataclass

from nbgrader.api import Student

from grading.course import Course
from grading.gradebook.reading import open_for_reading


@dataclass(frozen=True)
class Person:
    """Empty texts where the gradebook says nothing."""

    name: str = ""
    email: str = ""
    platform_id: str = ""
    first_name: str = ""
    last_name: str = ""


def read_people(course: Course) -> dict[str, Person]:
    """By student; nothing where there is no gradebook yet, and none is made."""
    with open_for_reading(course) as gradebook:
        return {student.id: _person(student) for student in (gradebook.students if gradebook else ())}


def _person(student: Student) -> Person:
    name = ", ".join(part for part in (student.last_name, student.first_name) if part)
    names = (student.first_name or "", student.last_name or "")
    return Person(name, student.email or "", student.lms_user_id or "", *names)
