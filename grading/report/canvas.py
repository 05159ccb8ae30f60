"""Grades as Canvas imports them: a gradebook CSV with Student, ID, SIS User ID, SIS Login ID, Section, then the labs.

Canvas finds a student by ID, else by SIS User ID, else by SIS Login ID, which is nbgrader's student id here. Ids are
written as they are, or Canvas would not know them; a student whose id would run as a formula or has characters
that are not shown is left out and named. With a roster (a gradebook exported from Canvas) its own id columns come
back, and a lab that Canvas has, under its name or its title, keeps Canvas's column. A blank cell is no grade: Canvas
shows it as a change where it has one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grading.errors import UserError
from grading.report.csv_table import number, text
from grading.report.exported import (
    Exported,
    as_rows,
    cannot_stand,
    grade_of,
    handins_of,
    remarks_on,
    with_handins,
)
from grading.report.people import Person
from grading.report.record import ClassRecord, LabRecord

ID_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
LOGIN = "SIS Login ID"
POINTS_POSSIBLE = "    Points Possible"
_WITH_ID = re.compile(r"(.*?)\s*\(\d+\)\Z", re.DOTALL)


@dataclass(frozen=True)
class CanvasRoster:
    """The id columns of an exported gradebook, its students' cells in them, and the headers of its assignments."""

    columns: tuple[str, ...]
    students: tuple[tuple[str, ...], ...]
    assignments: tuple[str, ...]

    def find(self, student: str) -> tuple[str, ...] | None:
        """The cells of the one student with this login, else with this SIS User ID, else with this ID."""
        for name in (LOGIN, "SIS User ID", "ID"):
            if name in self.columns:
                at = self.columns.index(name)
                # Canvas does not tell logins apart by case.
                found = [cells for cells in self.students if cells[at].casefold() == student.casefold()]
                if len(found) == 1:
                    return found[0]
        return None

    def column(self, lab: LabRecord) -> str | None:
        """Canvas's own header for a lab: "02_float_formats (1234)"."""
        wanted = {lab.lab.casefold(), lab.title.casefold()}
        found = [head for head in self.assignments if _without_id(head).casefold() in wanted]
        return found[0] if len(found) == 1 else None


def read_roster(path: Path) -> CanvasRoster:
    """Read a gradebook that Canvas exported. Raises UserError where the file is none."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"the roster {path} cannot be read ({reason})", "give the CSV that Canvas exported") from error
    first = content.split("\n", 1)[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    rows = [row for row in csv.reader(io.StringIO(content, newline=""), delimiter=delimiter) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    if "ID" not in header or "Section" not in header or LOGIN not in header:
        remedy = "export the gradebook in Canvas (Grades, Export) and give that file as it is"
        raise UserError(f'the roster {path} has no columns "ID", "{LOGIN}" and "Section"', remedy)
    width = header.index("Section") + 1
    students = tuple(tuple((row + [""] * width)[:width]) for row in rows[1:] if _is_student(row, header))
    return CanvasRoster(tuple(header[:width]), students, tuple(name for name in header[width:] if name))


def as_canvas(record: ClassRecord, people: Mapping[str, Person], roster: CanvasRoster | None = None) -> Exported:
    """The file's text. Raises UserError where nobody handed in anything, since Canvas refuses a file without grades."""
    labs = with_handins(record)
    if not labs:
        raise UserError("nobody has handed in anything yet", "export when there are grades")
    columns = roster.columns if roster else ID_COLUMNS
    rows: list[Sequence[str]] = [[*columns, *(_heading(lab, roster) for lab in labs)]]
    rows.append([POINTS_POSSIBLE, *[""] * (len(columns) - 1), *(number(lab.max_score) for lab in labs)])
    handins = [handins_of(lab) for lab in labs]
    left_out, written = [], set()
    for student in record.students:
        cells = _from_roster(roster, student) if roster else _own_cells(student, people.get(student, Person()))
        if cells is None or tuple(cells) in written:
            left_out.append(student)
            continue
        written.add(tuple(cells))
        rows.append([*cells, *(number(grade_of(found.get(student))) for found in handins)])
    why = "the id or the name looks like a formula or a heading, or has invisible characters"
    if roster:
        why = "the roster does not have exactly one student with that id"
    remarks = remarks_on(record, left_out, why)
    if roster:
        new = [lab.lab for lab in labs if roster.column(lab) is None]
        remarks += [f"new to Canvas, which will ask what to do with it: {', '.join(new)}"] if new else []
    return Exported(as_rows(rows), tuple(remarks))


def _heading(lab: LabRecord, roster: CanvasRoster | None) -> str:
    known = roster.column(lab) if roster else None
    return known if known is not None else text(lab.lab)


def _from_roster(roster: CanvasRoster, student: str) -> list[str] | None:
    cells = roster.find(student)
    if cells is None:
        return None
    # Canvas goes by its own ID, so that the other cells may be escaped.
    return [cell if name == "ID" else text(cell) for name, cell in zip(roster.columns, cells, strict=True)]


def _own_cells(student: str, person: Person) -> list[str] | None:
    name = text(person.name or student)
    if cannot_stand(student) or POINTS_POSSIBLE.strip() in name:
        return None
    return [name, person.platform_id if person.platform_id.isdecimal() else "", "", student, ""]


def _is_student(row: Sequence[str], header: Sequence[str]) -> bool:
    """Rows of points and of "Manual Posting" have no ID."""
    at = header.index("ID")
    return len(row) > at and bool(row[at].strip()) and POINTS_POSSIBLE.strip() not in row[0]


def _without_id(head: str) -> str:
    found = _WITH_ID.fullmatch(head)
    return found[1] if found else head
