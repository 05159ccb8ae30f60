"""Extensions: who may hand in a lab later than the others, by the file `extensions.csv` in the course's folder.

    student,lab,until,reason
    ada,02,2026-03-09 23:59 Europe/Berlin,ill until the 6th
    bob,02_float_formats,2026-03-12,

A row moves one student's due date, for nbgrader's own late penalties; a date alone means its last second. The column
`reason` may be missing. A row that cannot be obeyed is named, and neither the others nor what was granted before is
lost for it. An extension that was granted in another way (nbgrader's `grant_extension`) stays where the file says
nothing. Reasons are the instructor's: students are not shown them.
"""

from __future__ import annotations

import datetime
import json
import re
import zoneinfo
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, SubmittedAssignment
from sqlalchemy import select

from grading.course import Course
from grading.errors import UserError
from grading.files import write_whole
from grading.intake.names import folded, wrong_with_student
from grading.intake.sheet import read_sheet

EXTENSIONS = "extensions.csv"
COLUMNS = ("student", "lab", "until")
AS_IT_SHOULD_BE = "write one like 2026-03-09, 2026-03-09 23:59 UTC or 2026-03-09 23:59 Europe/Berlin"

_UNTIL = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:[ T](?P<time>\d\d:\d\d(?::\d\d)?))?(?: ?(?P<zone>[A-Za-z+-][\w+:/-]*))?"
)
_OFFSET = re.compile(r"[+-]\d\d:?\d\d")
_LAST_SECOND = datetime.time(23, 59, 59)


@dataclass(frozen=True)
class Extension:
    """A row that can be obeyed. `until` is in UTC without a zone, as nbgrader has its times; `row` counts lines from 1.

    Extension("ada", "02_float_formats", datetime.datetime(2026, 3, 9, 22, 59), "ill until the 6th", row=2)
    """

    student: str
    lab: str
    until: datetime.datetime
    reason: str
    row: int


@dataclass(frozen=True)
class Extensions:
    """The file: what it grants by lab and student, and what is wrong with the rest, in sentences."""

    granted: dict[tuple[str, str], Extension] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def of(self, lab: str) -> dict[str, Extension]:
        """By student."""
        return {student: found for (name, student), found in self.granted.items() if name == lab}


@dataclass(frozen=True)
class Change:
    """An extension that is in the gradebook now, or is no longer (until None); its reason."""

    student: str
    until: datetime.datetime | None
    reason: str


def read_extensions(course: Course) -> Extensions:
    """What the course's file says; nothing where there is none. Raises UserError where it cannot be read at all."""
    path = course.root / EXTENSIONS
    if not path.exists():
        return Extensions()
    rows = read_sheet(path, "extensions", needs=COLUMNS, may_have=("reason",))
    problems: list[str] = []
    found: dict[tuple[str, str], list[Extension]] = defaultdict(list)
    for line, row in enumerate(rows, start=2):
        if not any(isinstance(cell, str) and cell.strip() for cell in row.values()):
            continue
        try:
            extension = _extension(course, row, line)
            found[extension.lab, folded(extension.student)].append(extension)
        except ValueError as error:
            problems.append(f"{EXTENSIONS}, row {line}: {error}; the row is not obeyed")
    granted = {}
    for (lab, _), theirs in found.items():
        if len(theirs) == 1:
            granted[lab, theirs[0].student] = theirs[0]
            continue
        rows_of = " and ".join(str(each.row) for each in theirs)
        who = f"{theirs[0].student} and {lab}"
        problems.append(f"{EXTENSIONS}, rows {rows_of}: all about {who}; keep one: none of them is obeyed")
    return Extensions(granted, tuple(problems))


def _extension(course: Course, row: dict[str | None, str], line: int) -> Extension:
    """Raises ValueError with what is wrong."""
    if row.get(None):
        raise ValueError("it has more cells than there are columns (put a text with a comma into quotes)")
    student, name, until = ((row[column] or "").strip() for column in COLUMNS)
    if wrong := wrong_with_student(student):
        raise ValueError(wrong)
    try:
        lab = course.lab(name)
    except UserError as error:
        raise ValueError(f"{error.problem} (it has: {', '.join(course.labs())})") from error
    return Extension(student, lab, parse_moment(until), (row.get("reason") or "").strip(), line)


def parse_moment(text: str) -> datetime.datetime:
    """The last moment that is in time, in UTC without a zone.

    Raises ValueError: what is guessed at elsewhere would be a grade here.
    """
    wrong = ValueError(f'"{text}" is no date: {AS_IT_SHOULD_BE}')
    found = _UNTIL.fullmatch(text)
    if found is None:
        raise wrong
    try:
        day = datetime.date.fromisoformat(found["date"])
        time = datetime.time.fromisoformat(found["time"]) if found["time"] else _LAST_SECOND
        moment = datetime.datetime.combine(day, time, tzinfo=_zone(found["zone"] or "UTC"))
        return moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise wrong from error


def _zone(name: str) -> datetime.tzinfo:
    if _OFFSET.fullmatch(name):
        return datetime.datetime.strptime(name, "%z").tzinfo
    try:
        return datetime.UTC if name in ("UTC", "Z") else zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"there is no time zone {name}") from error


def problems_with(extensions: Extensions, lab: str, due: datetime.datetime | None) -> list[str]:
    """What is wrong with the rows about one lab, given its due date, and with rows that cannot be read."""
    found = list(extensions.problems)
    for extension in extensions.of(lab).values():
        where = f"{EXTENSIONS}, row {extension.row}"
        if due is None:
            text = f"{lab} has no due date, so nothing is late; the row is not obeyed until it has one"
            found.append(f"{where}: {text} (formgrader, Edit)")
        elif extension.until <= due:
            text = f"{extension.until} UTC is not after the due date, {due} UTC; the row is not obeyed"
            found.append(f"{where}: {text}")
    return found


def waiting_for(extensions: Extensions, lab: str, handed_in: Collection[str]) -> list[str]:
    """A remark for each row about somebody who has handed in nothing: they may yet, or the name is misspelled."""
    return [
        f'{EXTENSIONS}, row {extension.row}: nobody called "{student}" has handed in {lab} yet'
        for student, extension in extensions.of(lab).items()
        if student not in handed_in
    ]


def due_date(gradebook: Gradebook, lab: str) -> datetime.datetime | None:
    """When a lab is due, in UTC without a zone; None where it is never, or not in the gradebook."""
    return gradebook.db.execute(select(Assignment.duedate).filter_by(name=lab)).scalar_one_or_none()


def interval_of(extension: Extension | None, due: datetime.datetime | None) -> datetime.timedelta | None:
    """By how much it moves the due date; None where it does not."""
    return extension.until - due if extension and due and extension.until > due else None


def extend(
    course: Course, lab: str, gradebook: Gradebook, extensions: Extensions, only: str | None = None
) -> list[Change]:
    """Bring the lab's extensions into the gradebook's rows, of all students or of one. Nothing is committed.

    What the file granted before and no longer does is taken back, unless a row cannot be read: it may be that one.
    """
    due, granted, kept = due_date(gradebook, lab), extensions.of(lab), read_kept(course, lab)
    changes = []
    rows = gradebook.db.query(SubmittedAssignment).join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
    for row in rows.filter(Assignment.name == lab):
        student = row.student_id
        if only is not None and student != only:
            continue
        wanted = interval_of(granted.get(student), due)
        if wanted is None and (student not in kept or extensions.problems or student in granted):
            continue
        if row.extension != wanted:
            row.extension = wanted
            reason = granted[student].reason if wanted else ""
            changes.append(Change(student, granted[student].until if wanted else None, reason))
    return changes


def read_kept(course: Course, lab: str) -> list[str]:
    """Whose extensions in the gradebook came from the file."""
    try:
        return list(json.loads(_kept_path(course, lab).read_text()))
    except (OSError, ValueError, TypeError):
        return []


def keep(course: Course, lab: str, extensions: Extensions) -> None:
    """Remember whose extensions came from the file, those of before as well while a row cannot be read."""
    before = read_kept(course, lab) if extensions.problems else []
    names = sorted({*before, *extensions.of(lab)})
    if names or _kept_path(course, lab).exists():
        write_whole(_kept_path(course, lab), json.dumps(names).encode())


def _kept_path(course: Course, lab: str) -> Path:
    return course.root / ".grading" / f"extensions-{lab}.json"
