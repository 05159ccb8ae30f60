"""Grades in the columns of Gradescope's own gradebook (Download Grades): five about the student, four for each lab.

Gradescope does not take such a file in; programs that read its downloads read this one. SID is nbgrader's student id,
written as it is; a student whose id would run as a formula or has characters that are not shown is left out and named.
A blank cell is no grade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grading.errors import UserError
from grading.report.csv_table import number, text
from grading.report.exported import Exported, as_rows, cannot_stand, grade_of, handins_of, remarks_on, with_handins
from grading.report.people import Person
from grading.report.record import ClassRecord, Handin, LabRecord

STUDENT_COLUMNS = ("First Name", "Last Name", "SID", "Email", "Sections")
LAB_COLUMNS = ("", " - Max Points", " - Submission Time", " - Lateness (H:M:S)")
TOTAL_LATENESS = "Total Lateness (H:M:S)"


def as_gradescope(record: ClassRecord, people: Mapping[str, Person]) -> Exported:
    """The file's text. Raises UserError where nobody handed in anything."""
    labs = with_handins(record)
    if not labs:
        raise UserError("nobody has handed in anything yet", "export when there are grades")
    rows: list[Sequence[str]] = [
        [*STUDENT_COLUMNS, *(text(lab.lab) + ending for lab in labs for ending in LAB_COLUMNS), TOTAL_LATENESS]
    ]
    handins, left_out = [handins_of(lab) for lab in labs], []
    for student in record.students:
        if cannot_stand(student):
            left_out.append(student)
            continue
        person = people.get(student, Person())
        about = (person.first_name, person.last_name, person.email, record.sections.get(student, ""))
        first, last, email, section = map(text, about)
        theirs = [found.get(student) for found in handins]
        cells = [cell for lab, handin in zip(labs, theirs, strict=True) for cell in _cells(lab, handin)]
        total_s = sum(handin.late_s for handin in theirs if handin is not None)
        rows.append([first, last, student, email, section, *cells, _hours(total_s)])
    why = "the id looks like a formula or has invisible characters"
    return Exported(as_rows(rows), tuple(remarks_on(record, left_out, why)))


def _cells(lab: LabRecord, handin: Handin | None) -> list[str]:
    when = handin.handed_in_at if handin else None
    late = _hours(handin.late_s) if handin and when else ""
    return [number(grade_of(handin)), number(lab.max_score), f"{when:%Y-%m-%d %H:%M:%S} +0000" if when else "", late]


def _hours(seconds: float) -> str:
    """Hours, minutes and seconds: 26:03:00 is a day, two hours and three minutes."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"
