"""From points and a stored result to a mark: why these points.

Where no result is stored (a lab graded by other means) the outcome is read off the points alone.
"""

from __future__ import annotations

from grading.report.points import CellPoints
from grading.report.record import BY_HAND, NEEDS_GRADING, UNSUPERVISED, Item, Mark
from grading.supervisor.result import ExerciseResult, SubmissionResult


def mark_of(item: Item, points: CellPoints | None, result: SubmissionResult | None) -> Mark:
    """The mark of one item; a cell that the gradebook does not have gives no points."""
    if points is None:
        return Mark(item, 0.0, "unanswered")
    by_hand = points.by_hand and item.kind != "manual"
    outcome, hint, on_hidden = _explained(item, points, result)
    return Mark(item, points.score, outcome, hint, on_hidden, by_hand, points.waiting)


def _explained(item: Item, points: CellPoints, result: SubmissionResult | None) -> tuple[str, str | None, bool]:
    """Outcome, hint, and whether it was a hidden case that failed."""
    if item.kind == "manual":
        if points.waiting:
            return NEEDS_GRADING, None, False
        return (BY_HAND if points.by_hand else "unanswered"), None, False
    if item.kind == "test":
        ran = result.cells.get(item.cell) if result else None
        return UNSUPERVISED, ran.error if ran and not ran.ok else None, False
    found = result.exercises.get(item.id) if result else None
    if found is None:
        return _by_points(item, points), None, False
    return found.outcome, _hint(found), found.failed_hidden


def _by_points(item: Item, points: CellPoints) -> str:
    if points.score >= item.most:
        return "passed"
    return "partial" if points.score > 0 else "failed"


def _hint(found: ExerciseResult) -> str | None:
    """The diagnosed mistake, or what went wrong where none was recognized."""
    verdict = found.deciding
    if verdict.hint or verdict.outcome == "passed":
        return verdict.hint
    return next((text for label, text in verdict.rows if label == "problem"), None)
