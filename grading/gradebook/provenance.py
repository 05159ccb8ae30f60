"""The basis of a grade, part by part: a regrade happens when a part has changed, and can say which.

The parts are written into the graded notebook's metadata. Nothing is judged here.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, SubmittedAssignment
from sqlalchemy import select

from grading.course import Course
from grading.errors import UserError
from grading.intake.timestamp import TIMESTAMP
from grading.isolation import isolates
from grading.results import METADATA
from grading.supervisor.job import grader_digest
from grading.supervisor.packages import absent_imports, versions
from grading.supervisor.result import SubmissionResult


@dataclass(frozen=True)
class LabBasis:
    """What the gradebook and the course say of a lab: the parts that all students share, and each one's extension.

    LabBasis(shared={"lab": "0c4f…", "points": "77aa…", "due date": "2026-03-02 12:00:00", …},
             extensions={"ada": "None", "bob": "until 2026-03-04 12:00:00"})

    granted: the extensions of those who have no row in the gradebook yet.
    """

    shared: dict[str, str]
    extensions: dict[str, str]
    granted: dict[str, str] = field(default_factory=dict)

    def of(self, course: Course, lab: str, student: str, attempt: str) -> dict[str, str]:
        """The basis of this student's grade for this attempt (`Job.attempt`), part by part; digests and short texts.

        It covers everything that the job's key does: where no part has changed, the key has not either.
        """
        path = course.submitted(lab, student).with_name(TIMESTAMP)
        timestamp = path.read_text().strip() if path.is_file() else ""
        extension = self.extensions.get(student) or self.granted.get(student, extension_text(None, None))
        return {
            "submission": attempt,
            **self.shared,
            "time of submission": timestamp,
            "extension": extension,
        }


@dataclass(frozen=True)
class RecordedBasis:
    """What a graded notebook says of its own grade; all empty where there is no graded notebook.

    RecordedBasis(job="5f3c…", isolation="kernel", basis={"submission": "9c1e…", "lab": "0c4f…", …})
    """

    job: str | None = None
    isolation: str = ""
    basis: dict[str, str] = field(default_factory=dict)


def lab_basis(course: Course, lab: str, gradebook: Gradebook, student: str | None = None) -> LabBasis:
    """Read it for all students or for one.

    Raises UserError where the lab was never released, or where what it imports is not installed.
    """
    assignment = gradebook.db.execute(select(Assignment.id, Assignment.duedate).filter_by(name=lab)).one_or_none()
    if assignment is None:
        remedy = f"release it first: python -m grading release {course.root} {lab}"
        raise UserError(f"{lab} is not in the gradebook", remedy)
    rows = select(SubmittedAssignment.student_id, SubmittedAssignment.extension)
    rows = rows.filter_by(assignment_id=assignment.id)
    if student is not None:
        rows = rows.filter_by(student_id=student)
    template = course.template(lab)
    run = [cell.full_source for cell in template.cells if cell.cell_type == "code" and not cell.is_figure]
    if absent := absent_imports(run):
        # Nobody's program would get past that import, and everybody's points would be lost.
        remedy = "make setup in the checkout, then run the same command again"
        raise UserError(f"{lab} imports {', '.join(absent)}, which this machine does not have", remedy)
    shared = {
        "lab": _digest(repr(template.cells)),
        "points": _digest(repr([(cell.id, cell.points, cell.extra) for cell in template.cells if cell.worth])),
        "due date": str(assignment.duedate),
        "configuration": _digest(course.config.read_text()),
        "grader": grader_digest(),
        "course key": _digest(course.key().hex()),
        "environment": environment(),
    }
    extensions = {name: extension_text(assignment.duedate, moved_by) for name, moved_by in gradebook.db.execute(rows)}
    return LabBasis(shared, extensions)


def extension_text(due: datetime.datetime | None, moved_by: datetime.timedelta | None) -> str:
    """An extension as a part of a grade's basis."""
    return f"until {due + moved_by}" if due and moved_by else str(None)


def extended_until(basis: dict[str, str]) -> str | None:
    """The student's own due date in UTC, where the basis of a grade has an extension."""
    text = basis.get("extension", "")
    return text.removeprefix("until ") if text.startswith("until ") else None


def environment() -> str:
    """The versions that results may depend on."""
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def metadata_of(result: SubmissionResult, basis: dict[str, str]) -> dict:
    """The entry that a graded notebook carries; `recorded_basis` reads it back."""
    return {"job": result.key, "isolation": result.isolation, "rests_on": basis, "notes": list(result.notes)}


def recorded_basis(path: Path) -> RecordedBasis:
    """The basis that the graded notebook at `path` was written with."""
    try:
        metadata = json.loads(path.read_text())["metadata"][METADATA]
        return RecordedBasis(metadata["job"], metadata["isolation"], dict(metadata["rests_on"]))
    except (OSError, ValueError, KeyError, TypeError):
        return RecordedBasis()


def changes_since(old: RecordedBasis, basis: dict[str, str], has_row: bool, may_be_none: bool) -> list[str]:
    """The names of what differs from what was written; empty where the written grade stands.

    has_row is whether the gradebook knows the submission, may_be_none whether a grade that was
    made without isolation counts.
    """
    found = [name for name, value in basis.items() if old.basis.get(name) != value]
    if "environment" in found and "grader" in found:
        # The grader's digest covers the versions as well.
        found.remove("grader")
    if "lab" in found and "points" in found:
        found.remove("lab")
    if not isolates(old.isolation) and not may_be_none:
        found.append("isolation")
    if not has_row:
        found.append("gradebook")
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
