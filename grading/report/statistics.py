"""Counts over a class: how the totals spread, how each exercise went, which mistakes were made most.

Pure functions of the record. Work without a grade counts nowhere: a fault of ours is no zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grading.report.record import GRADED, NEEDS_GRADING, Handin, Item, LabRecord, Mark, Total

N_BINS = 10
MANY, MIN_TRIED = 0.5, 3
"""The share of those who tried an exercise from which on its failures are a warning, and how many must have tried."""


@dataclass(frozen=True)
class Bin:
    """Shares from `low` to below `high` (the last one: up to all), in percent, and how many students have them."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Mistake:
    """A hint, how many students it was for, and for how many of them only hidden cases showed it."""

    hint: str
    count: int
    n_hidden: int


@dataclass(frozen=True)
class ItemStatistics:
    """How the graded students did on one item: the five counts add up to `n`; `waiting` are for a person to grade."""

    item: Item
    n: int
    full: int
    partial: int
    unanswered: int
    nothing: int
    waiting: int
    mistakes: tuple[Mistake, ...]

    @property
    def pass_rate(self) -> float:
        return self.full / self.n if self.n else 0.0

    @property
    def tried(self) -> int:
        """Those who answered and have been graded."""
        return self.n - self.unanswered - self.waiting

    @property
    def fails_for_many(self) -> bool:
        """Whether at least half of those who tried it, and of three or more, have no points: is the task at fault?"""
        return self.tried >= MIN_TRIED and self.nothing >= MANY * self.tried


def histogram(shares: Sequence[float]) -> tuple[Bin, ...]:
    """Ten bins of the shares (0 to 1) that students have of the points."""
    width = 100 // N_BINS
    # A hair above, so that 0.3 of 10 points falls where it belongs.
    counts = Counter(min(max(int(share * N_BINS + 1e-9), 0), N_BINS - 1) for share in shares)
    return tuple(Bin(i * width, (i + 1) * width, counts[i]) for i in range(N_BINS))


def shares_of(graded: Sequence[Total | Handin]) -> list[float]:
    """The shares of those who have a grade and can have points; with optional exercises no more than all."""
    return [min(1.0, each.score / each.max_score) for each in graded if each.score is not None and each.max_score]


def item_statistics(lab: LabRecord) -> tuple[ItemStatistics, ...]:
    """One an item, over the students whose work in this lab is graded."""
    graded = [handin for handin in lab.handins if handin.state == GRADED]
    return tuple(_of_item(item, [handin.marks[index] for handin in graded]) for index, item in enumerate(lab.items))


def class_mistakes(labs: Sequence[LabRecord]) -> list[tuple[Item, Mistake]]:
    """Every hint of every exercise, the most frequent first, then in the order of the labs."""
    found = [(each.item, mistake) for lab in labs for each in item_statistics(lab) for mistake in each.mistakes]
    return sorted(found, key=lambda pair: -pair[1].count)


def _of_item(item: Item, marks: Sequence[Mark]) -> ItemStatistics:
    counts = Counter(_kind(mark) for mark in marks)
    kinds = ("full", "partial", "unanswered", "nothing", "waiting")
    return ItemStatistics(item, len(marks), *(counts[kind] for kind in kinds), mistakes(marks))


def _kind(mark: Mark) -> str:
    if mark.outcome == NEEDS_GRADING:
        return "waiting"
    if mark.is_full:
        return "full"
    if mark.score > 0:
        return "partial"
    return "unanswered" if mark.outcome == "unanswered" else "nothing"


def mistakes(marks: Sequence[Mark]) -> tuple[Mistake, ...]:
    """The hints of marks below the maximum, most frequent first, then by text."""
    hinted = [mark for mark in marks if mark.hint and not mark.is_full]
    counts = Counter(mark.hint for mark in hinted)
    hidden = Counter(mark.hint for mark in hinted if mark.on_hidden)
    ordered = sorted(counts, key=lambda hint: (-counts[hint], hint))
    return tuple(Mistake(hint, counts[hint], hidden[hint]) for hint in ordered)
