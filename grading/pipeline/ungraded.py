"""Who got no grade at the last try, and why: kept for the report, and forgotten when a grade comes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass

from grading.course import Course
from grading.submissions import write_whole
from grading.supervisor.session import LostUnderStudent


@dataclass(frozen=True)
class Ungraded:
    """A submission without a grade, and why: "unreadable" is the student's to mend, "infrastructure" is ours,
    "suspected" is a person's to look at.
    """

    student: str
    outcome: str
    reason: str


def ungraded_by(student: str, error: BaseException) -> Ungraded:
    """What to say of one that could not be made ready, or whose job ended with this error each time it was tried."""
    if isinstance(error, LostUnderStudent):
        return Ungraded(student, "suspected", f"each time it ran, the grader's own process was lost: {error}")
    if isinstance(error, BrokenExecutor):
        return Ungraded(student, "suspected", "each time it was graded, even alone, the process that grades ended")
    return Ungraded(student, "infrastructure", f"{type(error).__name__}: {error}")


def read_ungraded(course: Course, lab: str) -> dict[str, dict[str, str]]:
    """Who got no grade at the last try: {student: {"outcome": ..., "reason": ...}}."""
    try:
        return json.loads((course.root / ".grading" / f"ungraded-{lab}.json").read_text())
    except (OSError, ValueError):
        return {}


def store_ungraded(course: Course, lab: str, tried: Iterable[str], ungraded: Iterable[Ungraded]) -> None:
    """Remember who got no grade and why; what is known of students that were not tried stays."""
    path = course.root / ".grading" / f"ungraded-{lab}.json"
    kept = read_ungraded(course, lab)
    for student in tried:
        kept.pop(student, None)
    kept.update({item.student: {"outcome": item.outcome, "reason": item.reason} for item in ungraded})
    write_whole(path, json.dumps(kept, indent=1, sort_keys=True))
