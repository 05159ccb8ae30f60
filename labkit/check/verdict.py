"""A verdict: what the student is told about one exercise, as plain data that renders as text or as HTML.

It holds no tensors, so it travels and is stored as JSON. How it came about is `judge`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from labkit.spec import Outcome


@dataclass(frozen=True)
class Verdict:
    """outcome and score (0 to 1) of one exercise.

    rows: labelled findings ("expected", "5.96e-08"), shown in order. hint: the one diagnosed mistake, if any.
    budgets: (name, measured, limit, unit) of the tightest case. record: what the oracle keeps of runs that earn points.

        Verdict(
            exercise="12-softmax", outcome="failed", score=0.0,
            headline="12-softmax: 1 of 2 cases pass; this one does not.",
            rows=(("case", "n_rows=3, n_cols=1023"), ("expected", "0.5  (float32)"), ("got", "nan")),
            hint="exp overflowed: subtract the row's maximum first.",
            budgets=(("load_bytes", 12276.0, 12400.0, "bytes"),), n_passed=1, n_cases=2,
        )
    """

    exercise: str
    outcome: Outcome
    score: float
    headline: str
    rows: tuple[tuple[str, str], ...] = ()
    hint: str | None = None
    budgets: tuple[tuple[str, float, float, str], ...] = ()
    n_passed: int = 0
    n_cases: int = 0
    record: Mapping[str, Any] | None = None

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    def redacted(self) -> Verdict:
        """What a student may read of a hidden case: the diagnosis and the hint.

        No row stays: even an error's text is the student's to write, and could carry the hidden input. No measure
        stays: it could tell the input's size.
        """
        return replace(self, rows=(), budgets=(), record=None)

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict) -> Verdict:
        rows = tuple((label, text) for label, text in data["rows"])
        budgets = tuple((name, measured, limit, unit) for name, measured, limit, unit in data["budgets"])
        return cls(**{**data, "rows": rows, "budgets": budgets})
