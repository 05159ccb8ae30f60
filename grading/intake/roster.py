"""The roster: which student's id in the course belongs to which name or number on the learning platform.

A CSV file with a column `student`; every other column holds names or numbers that the same person goes by elsewhere,
so the class list or the grading worksheet of a platform will do once one column is called `student`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from grading.errors import UserError
from grading.intake.arrived import Refusal
from grading.intake.names import folded, wrong_with_student
from grading.intake.platform import Sender
from grading.intake.sheet import read_sheet


@dataclass(frozen=True)
class Roster:
    """`known`: for each folded name or number, the students who go by it."""

    students: tuple[str, ...]
    known: dict[str, frozenset[str]]

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
    if not rows or "student" not in rows[0]:
        raise UserError(f'{path} has no column "student"', "name the column with the course's student ids so")
    known: dict[str, set[str]] = defaultdict(set)
    students: dict[str, str] = {}
    for line, row in enumerate(rows, start=2):
        student = (row["student"] or "").strip()
        if wrong := wrong_with_student(student):
            raise UserError(f"{path}, row {line}: {wrong}", "correct the roster")
        if folded(student) in students:
            raise UserError(f'{path}, row {line}: student "{student}" is there already', "give everybody one row")
        students[folded(student)] = student
        for value in row.values():
            if isinstance(value, str) and value.strip():
                known[_key(value)].add(student)
    return Roster(tuple(students.values()), {key: frozenset(found) for key, found in known.items()})


def _key(name: str) -> str:
    """Letters and digits alone: Canvas turns "Lee, Ann" into "leeann", and Moodle's worksheet has "Participant 123"."""
    return re.sub(r"[\W_]", "", folded(name)).removeprefix("participant")
