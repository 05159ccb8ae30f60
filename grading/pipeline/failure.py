"""Why a submission got no grade, from the error that ended its job each time it was tried."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor

from grading.isolation.faults import LostUnderStudent
from grading.results import Ungraded
from grading.supervisor.own_time import TookTooLong


def ungraded_by(student: str, error: BaseException) -> Ungraded:
    """What to say of one that could not be made ready, or whose job ended with this error each time it was tried."""
    if isinstance(error, LostUnderStudent):
        return Ungraded(student, "suspected", f"each time it ran, the grader's own process was lost: {error}")
    if isinstance(error, TookTooLong):
        return Ungraded(student, "suspected", str(error))
    if isinstance(error, BrokenExecutor):
        return Ungraded(student, "suspected", "each time it was graded, even alone, the process that grades ended")
    return Ungraded(student, "infrastructure", f"{type(error).__name__}: {error}")
