"""Hold the log against what it speaks of: the gradebook's points, the stored results, the archived submissions.

Points that a person gave in the formgrader are in columns of their own: they are shown, and are no fault. Nothing is
changed, and whether a grade is right is not asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from nbgrader.api import (
    Assignment,
    BaseCell,
    Grade,
    SubmittedAssignment,
    SubmittedNotebook,
)

from grading.course import Course
from grading.gradebook.reading import open_for_reading
from grading.gradebook.standing import Standing
from grading.intake.store import archived_path
from grading.log.entry import LogEntry

LabStudent = tuple[str, str]
"""A lab and a student."""


def read_rows(course: Course) -> dict[LabStudent, Standing]:
    """Every student's points as they stand in the gradebook; nothing where there is no gradebook yet."""
    rows: dict[LabStudent, Standing] = {}
    with open_for_reading(course) as gradebook:
        if gradebook is None:
            return rows
        query = (
            gradebook.db.query(
                Assignment.name,
                SubmittedAssignment.student_id,
                BaseCell.name,
                Grade.auto_score,
                Grade.manual_score,
                Grade.extra_credit,
            )
            .select_from(Grade)
            .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
            .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
            .join(BaseCell, Grade.cell_id == BaseCell.id)
        )
        for lab, student, cell, auto, manual, extra in query:
            row = rows.setdefault((lab, student), Standing())
            row.auto[cell] = auto
            if manual is not None:
                row.by_hand[cell] = manual
            if extra:
                row.extra[cell] = extra
        query = (
            gradebook.db.query(
                Assignment.name, SubmittedAssignment.student_id, SubmittedNotebook.late_submission_penalty
            )
            .select_from(SubmittedNotebook)
            .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        )
        for lab, student, penalty in query:
            row = rows.get((lab, student), Standing())
            rows[lab, student] = replace(row, penalty=row.penalty + (penalty or 0.0))
    return rows


def differences(
    rows: Mapping[LabStudent, Standing], last: Mapping[LabStudent, LogEntry]
) -> list[tuple[LabStudent, str]]:
    """Where the gradebook is not what the log last says, with a sentence each."""
    found = []
    for who in sorted({*rows, *last}):
        row, entry = rows.get(who), last.get(who)
        if entry is None:
            if row.is_graded:
                found.append((who, "the gradebook has points that are not in the log"))
        elif row is None or not row.is_graded:
            found.append((who, f"entry {entry.n} of the log gave points, and the gradebook has none"))
        else:
            found += [(who, text) for text in _of_one(row, entry)]
    return found


def given_by_hand(row: Standing, entry: LogEntry | None) -> list[str]:
    """The cells with points of a person's. That of an optional exercise is the grader's extra credit, and is logged."""
    graders = (entry.facts.get("extra") or {}) if entry else {}
    return [*row.by_hand, *(cell for cell in row.extra if cell not in graders)]


def _of_one(row: Standing, entry: LogEntry) -> list[str]:
    logged = entry.facts.get("points") or {}
    texts = []
    for cell in sorted({*logged, *row.auto}):
        stands, was = row.auto.get(cell), logged.get(cell)
        # A cell that the lab got later has a row without points.
        if not _same(stands, was):
            texts.append(f"{cell}: the gradebook has {_points(stands)}, entry {entry.n} of the log gave {_points(was)}")
    for cell, was in sorted((entry.facts.get("extra") or {}).items()):
        stands = row.extra.get(cell, 0.0)
        if not _same(stands, was):
            given = f"entry {entry.n} of the log gave {_points(was)}"
            texts.append(f"{cell}: the gradebook has {_points(stands)} of extra credit, {given}")
    if not _same(row.penalty, entry.facts.get("penalty", 0.0)):
        was = _points(entry.facts.get("penalty", 0.0))
        texts.append(f"late penalty: the gradebook has {_points(row.penalty)}, entry {entry.n} of the log gave {was}")
    return texts


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 1e-9 * max(1.0, abs(one))


def _points(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def file_problems(course: Course, entries: Iterable[LogEntry]) -> list[tuple[LabStudent, str]]:
    """Results and submissions that are gone or are not the bytes that the log names.

    entries: those of kind "graded". Of results only each student's last is looked at: a rerun replaces it.
    """
    found, looked_at = [], set()
    last: dict[LabStudent, LogEntry] = {}
    for entry in entries:
        lab, student, digest = (str(entry.facts.get(name)) for name in ("lab", "student", "submission"))
        last[lab, student] = entry
        if (lab, digest) not in looked_at:
            looked_at.add((lab, digest))
            problem = _file_problem(archived_path(course, lab, digest), digest)
            if problem:
                found.append(((lab, student), f"the submission of entry {entry.n} {problem}"))
    for (lab, student), entry in last.items():
        if "result" in entry.facts:
            path = course.result(lab, str(entry.facts.get("job")))
            problem = _file_problem(path, entry.facts["result"])
            if problem:
                found.append(((lab, student), f"the result of entry {entry.n} {problem}"))
    return found


def _file_problem(path: Path, digest: str) -> str | None:
    try:
        with path.open("rb") as file:
            is_the_same = hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError as error:
        return f"cannot be read ({error.strerror}: {path})"
    return None if is_the_same else f"was changed after it was written ({path})"
