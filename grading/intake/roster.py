"""The roster: which student's id in the course belongs to which name or number on the learning platform.

A CSV file with a column `student`; every other column holds names or numbers that the same person goes by elsewhere,
so the class list or the grading worksheet of a platform will do once one column is called `student`. A column `section`
says in which part of the class somebody is, and is no name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from grading.course import Course
from grading.errors import UserError
from grading.intake.arrived import Refusal
from grading.intake.names import folded, wrong_with_student
from grading.intake.platform import Sender
from grading.intake.sheet import read_sheet

SECTION = "section"
OWN_ROSTER = "roster.csv"
"""The course's own, in its folder."""


@dataclass(frozen=True)
class Roster:
    """`known`: for each folded name or number, the students who go by it. `sections`: by student, where one is said."""

    students: tuple[str, ...]
    known: dict[str, frozenset[str]]
    sections: dict[str, str] = field(default_factory=dict)

    def student(self, sender: Sender) -> str:
        """The id of this sender. Raises Refusal where the roster has none, or more than one."""
        # The number first: two people may have one name, but never one number, nor one address.
        for key in (sender.number, sender.email, sender.name):
            students = self.known.get(_key(key), frozenset()) if key else frozenset()
            if len(students) > 1:
                raise Refusal(f'the roster has several students for "{key}": {", ".join(sorted(students))}')
            if students:
                return next(iter(students))
        wanted = " ".join(part for part in (sender.name, sender.number, sender.email) if part)
        raise Refusal(f'the roster has nobody called "{wanted}"')


def read_roster(path: Path) -> Roster:
    """Read a roster. Raises UserError where it cannot be read, lacks the column, or has one student twice."""
    rows = read_sheet(path, "roster")
    return _roster(path, rows)


def _roster(path: Path, rows: list[dict]) -> Roster:
    if not rows:
        raise UserError(f"{path} has nobody in it", "give it a header line with a column student, and a row for each")
    if "student" not in rows[0]:
        columns = ", ".join(f'"{name}"' for name in rows[0] if name)
        remedy = f"name the column with the student ids so; it has {columns}"
        raise UserError(f'{path} has no column "student"', remedy)
    known: dict[str, set[str]] = defaultdict(set)
    students: dict[str, str] = {}
    sections: dict[str, str] = {}
    for line, row in enumerate(rows, start=2):
        student = (row["student"] or "").strip()
        if wrong := wrong_with_student(student):
            raise UserError(f"{path}, row {line}: {wrong}", "correct the roster")
        if folded(student) in students:
            raise UserError(f'{path}, row {line}: student "{student}" is there already', "give everybody one row")
        students[folded(student)] = student
        for name, value in row.items():
            value = value.strip() if isinstance(value, str) else ""
            if value and name and name.strip().casefold() == SECTION:
                sections[student] = value
            elif value:
                known[_key(value)].add(student)
    return Roster(tuple(students.values()), {key: frozenset(found) for key, found in known.items()}, sections)


def read_sections(course: Course) -> dict[str, str]:
    """The sections by student, from `roster.csv` in the course's folder; none where there is no such file or column.

    Raises UserError where the file cannot be read.
    """
    path = course.root / OWN_ROSTER
    return read_roster(path).sections if path.exists() else {}


def _key(name: str) -> str:
    """Letters and digits alone: Canvas turns "Lee, Ann" into "leeann", and Moodle's worksheet has "Participant 123"."""
    return re.sub(r"[\W_]", "", folded(name)).removeprefix("participant")
