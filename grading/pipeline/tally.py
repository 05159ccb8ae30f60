"""What a run did, in numbers: how many were graded, which of them again and why, how many stayed as they were."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts of submissions; `again` counts what had changed of those that had a grade, by its name.

    outcomes counts exercises.
    """

    n_submissions: int
    n_new: int = 0
    n_again: int = 0
    n_unchanged: int = 0
    n_ungraded: int = 0
    again: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    @property
    def n_graded(self) -> int:
        return self.n_new + self.n_again

    @property
    def n_left(self) -> int:
        return self.n_submissions - self.n_graded - self.n_unchanged - self.n_ungraded

    def graded(self, changes: list[str], outcomes: list[str], is_new: bool) -> None:
        """Count a grade that was written."""
        self.outcomes.update(outcomes)
        if is_new:
            self.n_new += 1
        else:
            self.n_again += 1
            self.again.update(changes)

    def summary(self) -> list[str]:
        """A few lines for a person."""
        lines = []
        if self.n_graded:
            took_s = time.monotonic() - self.began
            rate = f"{self.n_graded / took_s * 60:.0f} a minute"
            lines.append(f"{_count(self.n_graded)} graded in {took_s:.0f} s ({rate})")
        if self.n_again:
            verb = "is" if self.n_again == 1 else "are"
            counts = sorted(self.again.items(), key=lambda item: (-item[1], item[0]))
            reasons = ", ".join(f"{name} changed ({n})" for name, n in counts)
            lines.append(f"{self.n_again} of {self.n_submissions} {verb} graded again: {reasons}")
        if self.n_unchanged:
            lines.append(f"{self.n_unchanged} of {self.n_submissions} unchanged: the grades stay as they are")
        return lines


def _count(n: int) -> str:
    return f"{n} submission{'' if n == 1 else 's'}"
