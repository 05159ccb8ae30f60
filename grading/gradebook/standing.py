"""What a student's grade in a lab is as nbgrader's gradebook has it, and what it would be with other points.

Nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from grading.gradebook.scores import Scores


@dataclass(frozen=True)
class Standing:
    """By cell: the grader's points (None: a person has to give them), a person's, extra credit; the late penalty.

    Standing(auto={"02-decode-check": 2.0, "02-open": None}, by_hand={"02-open": 1.5}, extra={}, penalty=0.5)
    """

    auto: dict[str, float | None] = field(default_factory=dict)
    by_hand: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    penalty: float = 0.0

    @property
    def before_penalty(self) -> float:
        """A person's points count in place of the grader's."""
        given = {**{cell: points or 0.0 for cell, points in self.auto.items()}, **self.by_hand}
        return sum(given.values()) + sum(self.extra.values())

    @property
    def is_graded(self) -> bool:
        """nbgrader also has a row without points for a try that failed."""
        return any(points is not None for points in self.auto.values())

    @property
    def total(self) -> float:
        return max(0.0, self.before_penalty - self.penalty)

    def earned(self, cell: str) -> float:
        """All that a cell counts."""
        return self.by_hand.get(cell, self.auto.get(cell) or 0.0) + self.extra.get(cell, 0.0)

    def with_scores(self, scores: Scores, penalty: float) -> Standing:
        """As it is once these points are saved: what a person gave stays."""
        return Standing({**self.auto, **scores.points}, self.by_hand, {**self.extra, **scores.extra}, penalty)

    def facts(self) -> dict[str, Any]:
        """For the log."""
        parts = {"points": self.auto, "by_hand": self.by_hand, "extra": self.extra, "penalty": self.penalty}
        return {**parts, "total": self.total}


def standing_of(gradebook: Gradebook, lab: str, student: str) -> Standing | None:
    """None where the gradebook has no points of this student for the lab."""
    try:
        submission = gradebook.find_submission(lab, student)
    except MissingEntry:
        return None
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    if all(grade.auto_score is None and grade.manual_score is None for grade in grades):
        return None
    return Standing(
        {grade.name: grade.auto_score for grade in grades},
        {grade.name: grade.manual_score for grade in grades if grade.manual_score is not None},
        {grade.name: grade.extra_credit for grade in grades if grade.extra_credit},
        sum(float(notebook.late_submission_penalty or 0.0) for notebook in submission.notebooks),
    )
