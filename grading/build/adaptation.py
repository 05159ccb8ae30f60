"""What a course changes of the labs, as data: every command reads it, and few of them build a lab (`adapt`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Adaptation:
    """What a course changes, by the ids of exercises and of questions that a person reads; nothing by default.

    Adaptation(leave_out=frozenset({"02-encode"}), points={"02-decode": 5.0})
    """

    leave_out: frozenset[str] = frozenset()
    points: Mapping[str, float] = field(default_factory=dict)

    def of_lab(self, lab: str) -> Adaptation:
        """The part of it that is about lab "02"."""
        own = {name: points for name, points in self.points.items() if name[:2] == lab}
        return Adaptation(frozenset(name for name in self.leave_out if name[:2] == lab), own)
