"""The record of a class as plain data: labs, what can be scored in them, and who got what, and why.

It knows no database and no file format; `collect` fills it, the exports and the page read it.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

ItemKind = Literal["exercise", "test", "manual", "other"]

UNSUPERVISED = "unsupervised"
NEEDS_GRADING = "needs grading"
BY_HAND = "by hand"
NOT_HANDED_IN = "not handed in"
NOT_GRADED = "not graded yet"
GRADED = "graded"
LATE = "late"


@dataclass(frozen=True)
class Item:
    """One thing in a lab that gives points; `cell` is its name in the gradebook.

    max_score is its share of the lab's points, extra what it can give on top of them: an optional exercise's points.
    kind: a supervised "exercise", a plain nbgrader "test", a "manual" cell, or "other": only the gradebook knows it.
    """

    id: str
    cell: str
    kind: ItemKind
    title: str
    max_score: float
    extra: float = 0.0

    @property
    def most(self) -> float:
        return self.max_score + self.extra


@dataclass(frozen=True)
class Mark:
    """What one student got for one item. `score` is in points, None while there is no grade.

    outcome: one of labkit's for an exercise, else one of the constants above, or why the whole lab has no grade.
    on_hidden: the public cases passed, so the student was shown the hint and no case.
    by_hand: a person set these points. waiting: a person has yet to set or to confirm them.

        Mark(Item("02-decode", "02-decode-check", "exercise", "Decode", 2.0), 0.0, "failed", hint="The exponent …")
    """

    item: Item
    score: float | None
    outcome: str
    hint: str | None = None
    on_hidden: bool = False
    by_hand: bool = False
    waiting: bool = False

    @property
    def is_full(self) -> bool:
        return self.score is not None and self.score >= self.item.most


@dataclass(frozen=True)
class Handin:
    """One student's work in one lab.

    state: "graded", "not graded yet", "not handed in", "unreadable" (the student's to mend), "infrastructure" (ours).
    reason says why there is no grade, outdated why the grade is not of the newest submission; notes are what was odd
    about the submission; feedback is the page, if one was made; isolation is the tier that the grade was made under.
    extended is the student's own due date, with the instructor's reason where the course's file has one; handed_in_at
    is in UTC without a zone, and late_s counts from the student's own due date.
    """

    student: str
    lab: str
    state: str
    marks: tuple[Mark, ...]
    penalty: float = 0.0
    reason: str | None = None
    outdated: str | None = None
    notes: tuple[str, ...] = ()
    feedback: Path | None = None
    isolation: str | None = None
    extended: str | None = None
    handed_in_at: datetime.datetime | None = None
    late_s: float = 0.0

    @property
    def score(self) -> float | None:
        """The points after the late penalty, never below 0; None while there is no grade.

        Those of optional exercises are among them, so there may be more than `max_score`.
        """
        scores = [mark.score for mark in self.marks]
        if any(score is None for score in scores):
            return None
        return max(0.0, sum(scores) - self.penalty)

    @property
    def max_score(self) -> float:
        return sum(mark.item.max_score for mark in self.marks)

    @property
    def extra(self) -> float:
        """The points of optional exercises, before any penalty."""
        return sum(mark.score or 0.0 for mark in self.marks if mark.item.extra)


@dataclass(frozen=True)
class LabRecord:
    """One lab: its items in the notebook's order, and every student's work in the order of their names."""

    lab: str
    title: str
    items: tuple[Item, ...]
    handins: tuple[Handin, ...]

    @property
    def max_score(self) -> float:
        return sum(item.max_score for item in self.items)

    @property
    def max_extra(self) -> float:
        """What the optional exercises can add."""
        return sum(item.extra for item in self.items)


@dataclass(frozen=True)
class Total:
    """A student's points over the labs that somebody handed in; `complete` is false while one has no grade."""

    student: str
    score: float
    max_score: float
    complete: bool


@dataclass(frozen=True)
class ClassRecord:
    """Everything about a class; labs in order, those that nobody handed in with no handins.

    problems: what is wrong with files that the course's instructor wrote, in sentences. sections: by student, for those
    whom the course's roster puts into one. only: the sections that this is the record of, where it is not of all.
    """

    name: str
    labs: tuple[LabRecord, ...]
    problems: tuple[str, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str | None, ...] = ()

    @property
    def section_names(self) -> tuple[str, ...]:
        """Those of the students who are here, in order."""
        return tuple(sorted({self.sections[student] for student in self.students if student in self.sections}))

    def of_section(self, *sections: str | None) -> ClassRecord:
        """The record of these sections alone; None stands for those who are in none."""
        labs = tuple(
            replace(lab, handins=tuple(each for each in lab.handins if self.sections.get(each.student) in sections))
            for lab in self.labs
        )
        names = ", ".join(section or "none" for section in sections)
        name = f"{self.name}, section{'s' if len(sections) > 1 else ''} {names}"
        return replace(self, name=name, labs=labs, only=sections)

    def has(self, student: str) -> bool:
        """Whether a student of the course is of those that this is the record of."""
        return not self.only or self.sections.get(student) in self.only

    @property
    def isolations(self) -> dict[str, int]:
        """How the students' programs were kept apart from the grader's machine: submissions by tier."""
        return dict(Counter(handin.isolation for handin in self.handins if handin.isolation))

    @property
    def handins(self) -> tuple[Handin, ...]:
        return tuple(handin for lab in self.labs for handin in lab.handins)

    @property
    def students(self) -> tuple[str, ...]:
        return tuple(sorted({handin.student for handin in self.handins}))

    def totals(self) -> tuple[Total, ...]:
        """One a student, in the order of their names."""
        theirs: dict[str, list[Handin]] = {student: [] for student in self.students}
        for handin in self.handins:
            theirs[handin.student].append(handin)
        return tuple(
            Total(
                student,
                sum(handin.score or 0.0 for handin in handins),
                sum(handin.max_score for handin in handins),
                all(handin.score is not None for handin in handins),
            )
            for student, handins in theirs.items()
        )
