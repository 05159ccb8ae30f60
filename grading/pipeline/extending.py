"""Bring the course's extensions into the gradebook before grades are written, and note in the log what changed.

What the file may say, and how a due date is moved, is the gradebook room's.
"""

from __future__ import annotations

from grading.course import Course
from grading.gradebook.extensions import Extensions
from grading.gradebook.writer import Writer
from grading.log import Log


def note_extensions(course: Course, lab: str, writer: Writer, log: Log) -> tuple[Extensions, list[str]]:
    """The extensions, and what is wrong with them, in sentences."""
    extensions, changes, problems = writer.extend()
    for change in changes:
        until = change.until and f"{change.until} UTC"
        log.append("extension", lab=lab, student=change.student, until=until, reason=change.reason)
    return extensions, problems
