"""What grading leaves in a course's `.grading` folder: the result of every job, and why a submission got no grade.

Running a job and writing its grade into the gradebook are done elsewhere.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from grading.course import Course
from grading.files import write_whole
from grading.isolation import isolates
from grading.isolation.faults import InfrastructureFault
from grading.supervisor import Job, SubmissionResult
from labkit.spec import Outcome

METADATA = "grading"
"""The name of our entry in a graded notebook's metadata; its "job" is the key of the result that it was graded by."""


def read_result(path: Path, may_be_none: bool = True) -> SubmissionResult | None:
    """A stored result; None where there is none, where it was cut short or is not that of the key in its name, or where
    it was made without isolation and `may_be_none` is false.
    """
    try:
        result = SubmissionResult.from_json(json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    if result.key != path.stem:
        return None
    return result if may_be_none or isolates(result.isolation) else None


def save_result(course: Course, job: Job, result: object, may_be_none: bool = True) -> SubmissionResult:
    """Store what `run` returned for this job, under the job's key.

    Whoever ran it, maybe on another machine, has a say in this job's grade and in no other's. Raises OSError, and
    InfrastructureFault where it is no result, another job's, or made without isolation and `may_be_none` is false.

    The file, `.grading/results/02_float_formats/5f3c….json`, holds SubmissionResult.to_json:

        {"key": "5f3c…", "lab": "02_float_formats", "student": "ada",
         "exercises": {"02-decode": {"public": {"outcome": "passed", "score": 1.0, …}, "hidden": {…} or null}},
         "cells": {"02-decode": {"ok": true, "error": null, "printed": "", "value": null, "skipped": false}},
         "notes": [], "isolation": "kernel", "usage": {"wall_s": 3.1, "cpu_s": 2.4}}
    """
    try:
        found = SubmissionResult.from_json(result)
        text = json.dumps(found.to_json(), indent=1)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InfrastructureFault(f"what came back is no result ({type(error).__name__}: {error})") from error
    if trouble := _unlike_a_result(found):
        raise InfrastructureFault(f"what came back is no result ({trouble})")
    if (found.key, found.lab, found.student) != (job.key, job.lab, job.student):
        raise InfrastructureFault("what came back is the result of another submission")
    if not (may_be_none or isolates(found.isolation)):
        raise InfrastructureFault("what came back was made without isolation")
    write_whole(course.result(job.lab, job.key), text.encode())
    return found


def _unlike_a_result(found: SubmissionResult) -> str | None:
    """What no run of ours would say: points beyond an exercise's own, or none that can be added up, or no text."""
    for name, result in found.exercises.items():
        for verdict in filter(None, (result.public, result.hidden)):
            texts = (verdict.headline, verdict.hint or "", *itertools.chain(*verdict.rows))
            if verdict.exercise != name or verdict.outcome not in get_args(Outcome):
                return f"{name} is said to be {verdict.exercise!a} and {verdict.outcome!a}"
            if type(verdict.score) not in (int, float) or not 0 <= verdict.score <= 1:
                return f"{name} has a score of {verdict.score!a}"
            if not all(isinstance(text, str) for text in texts):
                return f"{name} has something that is no text"
    for name, cell in found.cells.items():
        if not isinstance(cell.printed, str) or not isinstance(cell.error or "", str):
            return f"cell {name} has printed something that is no text"
    return None


@dataclass(frozen=True)
class Ungraded:
    """A submission without a grade, and why: "unreadable" is the student's to mend, "infrastructure" is ours,
    "suspected" is a person's to look at.

        Ungraded("ada", "unreadable", "02_float_formats.ipynb is a link or lies behind one: ask for the file itself")
    """

    student: str
    outcome: str
    reason: str


def read_ungraded(course: Course, lab: str) -> dict[str, dict[str, str]]:
    """Who got no grade at the last try: {"ada": {"outcome": "unreadable", "reason": "…"}}."""
    try:
        return json.loads(_ungraded_path(course, lab).read_text())
    except (OSError, ValueError):
        return {}


def save_ungraded(course: Course, lab: str, tried: Iterable[str], ungraded: Iterable[Ungraded]) -> None:
    """Remember who got no grade and why; what is known of students that were not tried stays. Raises OSError."""
    known = read_ungraded(course, lab)
    for student in tried:
        known.pop(student, None)
    known.update({item.student: {"outcome": item.outcome, "reason": item.reason} for item in ungraded})
    write_whole(_ungraded_path(course, lab), json.dumps(known, indent=1, sort_keys=True).encode())


def _ungraded_path(course: Course, lab: str) -> Path:
    return course.root / ".grading" / f"ungraded-{lab}.json"
