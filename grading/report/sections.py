"""The sections of a class, as its roster says them, and how they did beside each other.

A student without a section counts in none. Points and outcomes are the record's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from grading.report.record import GRADED, NOT_HANDED_IN, ClassRecord, LabRecord
from grading.report.statistics import shares_of


@dataclass(frozen=True)
class SectionFigures:
    """One section in one lab: students, how many handed in and are graded, and the middle one's share of the points."""

    n: int
    n_handed_in: int
    n_graded: int
    median: float | None


@dataclass(frozen=True)
class SectionTable:
    """Side by side: for each lab that somebody handed in, the figures of each section in the order of `names`."""

    names: tuple[str, ...]
    rows: tuple[tuple[LabRecord, tuple[SectionFigures, ...]], ...]


def section_table(record: ClassRecord) -> SectionTable | None:
    """None where the students belong to fewer than two sections: there is nothing to compare."""
    names = record.section_names
    if len(names) < 2:
        return None
    labs = [lab for lab in record.labs if lab.handins]
    figures = ((lab, tuple(_figures(lab, name, record.sections) for name in names)) for lab in labs)
    return SectionTable(names, tuple(figures))


def _figures(lab: LabRecord, name: str, sections: Mapping[str, str]) -> SectionFigures:
    theirs = [handin for handin in lab.handins if sections.get(handin.student) == name]
    graded = [handin for handin in theirs if handin.state == GRADED]
    shares = shares_of(graded)
    n_handed_in = sum(handin.state != NOT_HANDED_IN for handin in theirs)
    return SectionFigures(len(theirs), n_handed_in, len(graded), median(shares) if shares else None)
