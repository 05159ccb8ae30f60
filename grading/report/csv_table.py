"""The record of a class as CSV: one row for each student and exercise, and one for each late penalty.

An optional exercise has a max_score of 0: what it earned comes on top of the lab's points.

Programs that open CSV files run cells that begin with = + - @ as formulas, some of them also where these are as wide
as a Chinese character, so such a text gets an apostrophe in front ("'=SUM(A1)"); a program that reads the file back
takes that apostrophe off. Numbers are written as they are. A character that is not printed as itself becomes a "?".
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from grading.report.record import LATE, ClassRecord, Handin, Mark
from grading.terminal import one_line

COLUMNS = ("student", "lab", "exercise", "score", "max_score", "outcome", "hint")
FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
FORMULA = re.compile(rf"((?:^|;)[ \"']*)(?=[{re.escape(''.join(FORMULA_STARTS))}])")

CsvRow = tuple[str, str, str, float | None, float, str, str]


def as_csv(record: ClassRecord) -> str:
    """The whole file. A score is empty while there is no grade; the scores of a student and lab add up to the total."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for row in rows(record):
        writer.writerow([_cell(value) for value in row])
    return file.getvalue()


def rows(record: ClassRecord) -> Iterator[CsvRow]:
    """By student, then by lab, then in the notebook's order."""
    handins = sorted(enumerate(record.handins), key=lambda pair: (pair[1].student, pair[0]))
    for _, handin in handins:
        for mark in handin.marks:
            yield _row(handin, mark)
        if handin.penalty and handin.score is not None:
            lost = sum(mark.score for mark in handin.marks) - handin.score
            yield (handin.student, handin.lab, "late penalty", -lost, 0.0, LATE, "")


def _row(handin: Handin, mark: Mark) -> CsvRow:
    hint = mark.hint or ""
    if mark.on_hidden and not mark.is_full:
        hint = f"(hidden cases) {hint}".strip()
    return (handin.student, handin.lab, mark.item.id, mark.score, mark.item.max_score, mark.outcome, hint)


def number(value: float | None) -> str:
    """Points as every program reads them: a point, no thousands separators; empty where there are none."""
    return "" if value is None else f"{round(value, 6):.12g}"


def text(value: str) -> str:
    """A text on one line that no program runs as a formula."""
    return quoted(one_line(value))


def quoted(line: str) -> str:
    """The line with an apostrophe in front of what a program would run as a formula.

    Some look behind blanks; and where numbers have a decimal comma, ";" ends a cell, in most quotes too.
    """
    return FORMULA.sub(r"\1'", line)


def _cell(value: str | float | None) -> str:
    return text(value) if isinstance(value, str) else number(value)
