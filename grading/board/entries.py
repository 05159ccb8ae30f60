"""The entries of a course's leaderboard: of every submission that was graded, what its script came to.

Every graded submission counts, so that a later one never costs a place and one student can be on several machines'
boards. What is suspected, and what earned no points, is no entry. Nothing is run and nothing is written.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grading.course import Course
from grading.errors import UserError
from grading.intake.history import read_history
from grading.log import Log
from grading.log.entry import LogEntry
from grading.log.grades import last_grades
from grading.report.points import CellPoints, StudentPoints, read_points
from grading.results import read_result
from labkit.capstone import Entry

EXERCISE = "20-budget"
ENTRY, JUDGED_ON = "entry", "judged_on"
"""What the record of a verdict holds: the entry as JSON, and the processor that the loss was worked out on."""
EARNED = ("passed", "partial")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Candidate:
    """An entry, whose it is, and what is known of how it came about.

    attempt: the SHA-256 of the submitted notebook. handed_in: in UTC. versions: of the packages that it was graded
    with, by name.

        Candidate("ada", "9c1e…", Entry("basement", 0.5, 200, 9000.0, 0.0, {"parameters": 2**31}, {"7": 1.5}, "a510…"),
                  datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC), "GenuineIntel, family 6, model 143")
    """

    student: str
    attempt: str
    entry: Entry
    handed_in: datetime.datetime
    judged_on: str = ""
    isolation: str = "none"
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidates:
    """All that may have a place, and what a person should know of the rest, in sentences that name students."""

    found: tuple[Candidate, ...]
    remarks: tuple[str, ...] = ()


def find_candidates(course: Course, until: datetime.datetime | None = None) -> Candidates:
    """The entries of submissions that were handed in up to `until` (in UTC). Raises UserError where none is graded."""
    lab = course.lab(EXERCISE[:2])
    gradebook, times = read_points(course).lab(lab), _Times(course, lab)
    by_hand = _cells_of(course, lab)
    graded = list(_graded(Log(course).entries(), lab))
    if not graded:
        remedy = f"collect submissions, and grade them: python -m grading grade {course.root} {lab}"
        raise UserError(f"nobody's work in {lab} is graded yet", remedy)
    newest = {student: entry.facts["submission"] for (_, student), entry in last_grades(graded, lab).items()}
    found, remarks = [], []
    for entry in graded:
        student, attempt = entry.facts["student"], entry.facts["submission"]
        points = gradebook.students.get(student)
        if _refused_by_a_person(points, by_hand):
            remarks.append(f"{student}: a person gave {EXERCISE} no points, so no entry of theirs has a place")
            continue
        candidate, remark = _candidate(course, lab, entry)
        if remark:
            remarks.append(remark)
        if candidate is None:
            continue
        is_newest = newest[student] == attempt
        when, is_known = times.of(entry, points if is_newest else None)
        if until is not None and when > until:
            late = "was handed in" if is_known else "was graded (when it was handed in is not noted)"
            remarks.append(f"{student}: the entry {candidate.entry.digest} {late} after the freeze")
            continue
        found.append(replace(candidate, handed_in=when))
    return Candidates(tuple(found), tuple(dict.fromkeys(remarks)))


def _graded(entries: Iterable[LogEntry], lab: str) -> Iterator[LogEntry]:
    """The last grade of every submission, in the order in which the submissions were graded first."""
    last: dict[tuple[str, str], LogEntry] = {}
    for entry in entries:
        facts = entry.facts
        if entry.kind == "graded" and facts.get("lab") == lab and {"student", "submission", "job"} <= set(facts):
            last[str(facts["student"]), str(facts["submission"])] = entry
    yield from last.values()


def _cells_of(course: Course, lab: str) -> tuple[str, ...]:
    return tuple(cell.id for cell in course.template(lab).cells if cell.exercise == EXERCISE and cell.kind == "check")


def _refused_by_a_person(points: StudentPoints | None, cells: tuple[str, ...]) -> bool:
    theirs: list[CellPoints] = [points.cells[cell] for cell in cells if points and cell in points.cells]
    return any(each.by_hand and each.score <= 0 for each in theirs)


def _candidate(course: Course, lab: str, graded: LogEntry) -> tuple[Candidate | None, str]:
    """The entry that this grade rests on, without its time; and what there is to say where it has none."""
    student, attempt = str(graded.facts["student"]), str(graded.facts["submission"])
    result = read_result(course.result(lab, str(graded.facts["job"])))
    if result is None:
        return None, f"{student}: the result of submission {attempt[:12]} is gone: grade it again"
    found = result.exercises.get(EXERCISE)
    if found is None:
        return None, ""
    verdict = found.deciding
    if verdict.outcome == "suspected":
        return None, f"{student}: submission {attempt[:12]} is suspected, and has no place"
    if found.hidden is None or verdict.outcome not in EARNED or found.score <= 0:
        return None, ""
    entry = entry_in(verdict.record)
    if entry is None:
        return None, f"{student}: the result of submission {attempt[:12]} holds no entry: grade it again"
    if not entry.counts:
        return None, ""
    judged_on = str(verdict.record.get(JUDGED_ON, ""))
    versions = graded.facts.get("environment") or {}
    moment = datetime.datetime.fromtimestamp(0, datetime.UTC)
    return Candidate(student, attempt, entry, moment, judged_on, result.isolation, versions), ""


def entry_in(record: Mapping[str, Any] | None) -> Entry | None:
    """The entry in a verdict's record; None where none is there that a board could show.

    What it is called by comes out of a sandbox, and a page's file is named after the machine.
    """
    try:
        entry = Entry.from_json((record or {})[ENTRY])
        peak = entry.peak_bytes
        is_one = (
            all(map(_NAME.fullmatch, (entry.machine, entry.digest, *peak)))
            and isinstance(entry.changed, str)
            and type(entry.declared_steps) is int
            and all(type(n_bytes) is int and n_bytes >= 0 for n_bytes in peak.values())
            and all(map(math.isfinite, (entry.virtual_hours, entry.step_ms, entry.setup_ms, *entry.losses.values())))
            and entry.virtual_hours > 0
            and bool(peak)
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return entry if is_one else None


class _Times:
    """When a submission was handed in: as it was noted when it was graded or came in, or as nbgrader has the newest."""

    def __init__(self, course: Course, lab: str) -> None:
        self._received = {
            (student, received.digest): received.when
            for student, history in read_history(course, lab).items()
            for received in history
            if received.when is not None
        }

    def of(self, graded: LogEntry, points: StudentPoints | None) -> tuple[datetime.datetime, bool]:
        """In UTC, and whether it is known: else it is the moment of the grade. points: of the newest submission."""
        key = str(graded.facts["student"]), str(graded.facts["submission"])
        if noted := graded.facts.get("handed_in"):
            return _moment(noted), True
        if key in self._received:
            return self._received[key], True
        if points is not None and points.handed_in_at is not None:
            return points.handed_in_at.replace(tzinfo=datetime.UTC), True
        return _moment(graded.time), False


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
