"""Grades as Moodle imports them (Grades, Import, CSV file): a column that says who, one with points for each lab.

Moodle asks for the mapping of the columns: the first "from" and "to" the same field, then each lab to its grade item.
Ids are written as they are, or Moodle would not know them; a student whose id would run as a formula or has
characters that are not shown is left out and named. Import comments together with their grades: Moodle's import of a
comment alone empties the grade. A blank cell is no grade.
"""

from __future__ import annotations

from collections.abc import Mapping

from grading.errors import UserError
from grading.report.csv_table import number, quoted, text
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
from grading.report.record import ClassRecord, Handin, Mark
from grading.terminal import one_line

ID_FIELDS = {"email": "Email address", "username": "Username", "idnumber": "ID number"}
"""By the name on the command line, the heading that Moodle's own exports give the column."""


def as_moodle(record: ClassRecord, people: Mapping[str, Person], id_field: str, comments: bool = False) -> Exported:
    """The file's text. Raises UserError where nobody handed in anything, since there would be nothing to map."""
    labs = with_handins(record)
    if not labs:
        raise UserError("nobody has handed in anything yet", "export when there are grades")
    header = [ID_FIELDS[id_field]]
    for lab in labs:
        header += [text(lab.lab), text(f"{lab.lab} (Feedback)")][: 1 + comments]
    rows, left_out = [header], []
    handins = [handins_of(lab) for lab in labs]
    for student in record.students:
        identity = _identity(student, people.get(student, Person()), id_field)
        if identity is None:
            left_out.append(student)
            continue
        row = [identity]
        for found in handins:
            handin = found.get(student)
            row += [number(grade_of(handin)), quoted(_comment(handin))][: 1 + comments]
        rows.append(row)
    what = "the email address is unknown" if id_field == "email" else "there is no id"
    return Exported(
        as_rows(rows),
        tuple(remarks_on(record, left_out, f"{what}, or it would run as a formula or has invisible characters")),
    )


def _identity(student: str, person: Person, id_field: str) -> str | None:
    identity = student
    if id_field == "email":
        identity = person.email or (student if "@" in student else "")
    return identity if identity and not cannot_stand(identity) else None


def _comment(handin: Handin | None) -> str:
    """One line of what the student may know; nothing where there is no grade."""
    if grade_of(handin) is None:
        return ""
    parts = [_of_mark(mark) for mark in handin.marks]
    if handin.penalty:
        parts.append(f"late penalty: {number(handin.penalty)}")
    # No tag comes through, whatever a student's error text says: platforms show comments as HTML.
    return "; ".join(one_line(" ".join(part.split())) for part in parts).replace("<", "<\u200b")


def _of_mark(mark: Mark) -> str:
    line = f"{mark.item.id}: {number(mark.score)} of {number(mark.item.most)}{' extra' if mark.item.extra else ''}"
    if mark.waiting:
        return f"{line} (to be graded by a person)"
    if mark.is_full:
        return line
    if mark.on_hidden:
        # What is known of a hidden case is not for a comment: the feedback page says what may be said.
        return f"{line} (the public cases pass, but not every hidden one does)"
    return f"{line} ({mark.hint})" if mark.hint else line
