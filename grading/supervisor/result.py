"""What grading a submission yields, as plain data that is stored as JSON and read back unchanged."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from labkit.check.verdict import Verdict
from labkit.spec import Outcome

WAITED_S = 1.0
"""On a machine that it has to itself, a submission of one process stands in line for some hundredths of a second."""


@dataclass(frozen=True)
class CellResult:
    """How one of the student's cells, or a plain test cell, ran.

    value is the last expression's text, for tests; skipped says that it did not end, or ended the process.
    """

    ok: bool
    error: str | None
    printed: str
    value: str | None = None
    skipped: bool = False


@dataclass(frozen=True)
class ExerciseResult:
    """The verdicts on the public and on the hidden cases; hidden ones are drawn only where the public ones passed."""

    public: Verdict
    hidden: Verdict | None

    @property
    def outcome(self) -> Outcome:
        return self.deciding.outcome

    @property
    def score(self) -> float:
        """0 to 1."""
        return self.deciding.score

    @property
    def deciding(self) -> Verdict:
        return self.public if self.hidden is None or self.public.score == 0 else self.hidden

    @property
    def shown(self) -> Verdict:
        """What the student may read: of hidden cases no value, no record, no measure, which could tell their size."""
        if self.hidden is None or self.public.score == 0:
            return self.public
        verdict = self.hidden if self.hidden.score > 0 else self.hidden.redacted()
        rows = self.public.rows if verdict.score > 0 else ()
        return replace(verdict, rows=rows, budgets=self.public.budgets, record=None)

    @property
    def failed_hidden(self) -> bool:
        return self.hidden is not None and self.public.score > 0 and self.hidden.score == 0


@dataclass(frozen=True)
class SubmissionResult:
    """Everything about one graded submission; keys are cell ids for cells and tests, exercise ids for exercises.

    isolation is the tier it ran under; usage is what the run took as seen from outside: wall_s, cpu_s, and, where the
    kernel counts it, waited_s: how long its processes and the supervisor, all added up, stood in line for a processor.
    """

    key: str
    lab: str
    student: str
    exercises: dict[str, ExerciseResult]
    cells: dict[str, CellResult]
    notes: tuple[str, ...]
    isolation: str = "none"
    usage: dict[str, float] = field(default_factory=dict)

    @property
    def owes_to_others(self) -> bool:
        """Whether something came to nothing at a limit while others may have had the processors that it needed."""
        is_short = any(cell.skipped for cell in self.cells.values()) or any(
            item.outcome in ("limit", "suspected") for item in self.exercises.values()
        )
        # Where the kernel does not count it, nobody can say that it did not wait.
        return is_short and self.usage.get("waited_s", WAITED_S) >= WAITED_S

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict) -> SubmissionResult:
        exercises = {
            name: ExerciseResult(
                Verdict.from_json(item["public"]), item["hidden"] and Verdict.from_json(item["hidden"])
            )
            for name, item in data["exercises"].items()
        }
        cells = {name: CellResult(**item) for name, item in data["cells"].items()}
        return cls(**{**data, "exercises": exercises, "cells": cells, "notes": tuple(data["notes"])})
