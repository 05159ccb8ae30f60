"""What every export for a learning platform has in common: which grades count, and what its reader must know."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from grading.errors import UserError
from grading.report.csv_table import text
from grading.report.record import GRADED, ClassRecord, Handin, LabRecord


@dataclass(frozen=True)
class Exported:
    """A file's text, and remarks for the person who asked for it: who was left out, what is not final."""

    text: str
    remarks: tuple[str, ...] = ()


def grade_of(handin: Handin | None) -> float | None:
    """Points after the late penalty; None, for a blank cell, where nothing was handed in or nothing is graded."""
    return handin.score if handin is not None and handin.state == GRADED else None


def with_handins(record: ClassRecord) -> list[LabRecord]:
    """The labs that somebody handed in."""
    return [lab for lab in record.labs if lab.handins]


def only_labs(record: ClassRecord, labs: Sequence[str]) -> ClassRecord:
    """The record with these labs alone."""
    return replace(record, labs=tuple(lab for lab in record.labs if lab.lab in labs))


def only_sections(record: ClassRecord, names: Sequence[str]) -> ClassRecord:
    """The record of these sections together. Raises UserError for one that nobody is in."""
    if missing := [name for name in names if name not in record.section_names]:
        known = ", ".join(record.section_names)
        remedy = f"there are: {known}" if known else "give roster.csv in the course's folder a column section"
        raise UserError(f'nobody here is in section "{missing[0]}"', remedy)
    return record.of_section(*names)


def file_name(stem: str, suffix: str, *parts: str) -> str:
    """What a file is called that is about these parts of the class or of the course alone, so that it does not take the
    place of the whole one: `file_name("grades", ".csv", "02", "Group A")` is "grades-02-Group_A.csv"."""
    return "-".join([stem, *(re.sub(r"[^\w.-]+", "_", part) for part in parts)]) + suffix


def handins_of(lab: LabRecord) -> dict[str, Handin]:
    """By student."""
    return {handin.student: handin for handin in lab.handins}


def as_rows(rows: Iterable[Sequence[str]]) -> str:
    """The rows as CSV, every cell in quotes."""
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return file.getvalue()


def cannot_stand(identity: str) -> bool:
    """Whether a program would run this as a formula, or hide a part of it. A name by which somebody is found cannot be
    written otherwise."""
    return text(identity) != identity


def remarks_on(record: ClassRecord, left_out: Sequence[str], why: str) -> list[str]:
    """Who is not in the file, and whose points are not final."""
    remarks = [f"left out, because {why}: {', '.join(left_out)}"] if left_out else []
    waiting = [
        f"{handin.student} ({handin.lab})"
        for handin in record.handins
        if handin.state == GRADED and any(mark.waiting for mark in handin.marks)
    ]
    if waiting:
        remarks.append(f"not final, because a person has yet to give points: {', '.join(waiting)}")
    above = [
        f"{handin.student} ({handin.lab})"
        for handin in record.handins
        if handin.state == GRADED and handin.score is not None and handin.score > handin.max_score
    ]
    if above:
        remarks.append(f"above the lab's maximum, thanks to optional exercises: {', '.join(above)}")
    outdated = [f"{handin.student} ({handin.lab})" for handin in record.handins if handin.outdated]
    if outdated:
        remarks.append(f"of an earlier submission or grader: {', '.join(outdated)}")
    return remarks
