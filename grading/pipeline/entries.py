"""What the log says of a grade: the bytes it is of, what it was made with and under, what came out.

Only facts are gathered here; the entry is written by the run.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from importlib.metadata import version
from typing import Any

from grading.gradebook.scores import Scores
from grading.submissions import Prepared
from grading.supervisor.job import grader_digest
from grading.supervisor.limits import CellLimits
from grading.supervisor.packages import versions
from grading.supervisor.result import SubmissionResult
from labkit import exercises


def facts_of(
    prepared: Prepared,
    result: SubmissionResult,
    stored: bytes,
    scores: Scores,
    penalty: float,
    extended: str | None = None,
) -> dict[str, Any]:
    """The facts of a "graded" entry (an example: grading.log.grades).

    stored: the bytes of the stored result. scores: what the grader gave. penalty: nbgrader's late penalty in points.
    extended: the student's own due date, in UTC.
    """
    job = prepared.job
    return {
        "lab": job.lab,
        "student": job.student,
        "submission": job.attempt,
        "job": job.key,
        "result": hashlib.sha256(stored).hexdigest(),
        "grader": grader_digest(),
        "environment": environment(),
        "limits": limits(result),
        "isolation": result.isolation,
        "usage": {name: round(value, 4) for name, value in result.usage.items()},
        "outcomes": {name: found.outcome for name, found in result.exercises.items()},
        "points": dict(scores.points),
        "extra": dict(scores.extra),
        "penalty": penalty,
        **({"extended": extended} if extended else {}),
        **({"handed_in": prepared.handed_in.isoformat()} if prepared.handed_in else {}),
        "notes": list(result.notes),
    }


@functools.cache
def environment() -> dict[str, str]:
    """What runs the submissions: Python, the packages that decide results, and the machine."""
    machine = f"{platform.system()} {platform.machine()}"
    return {**versions(), "nbgrader": version("nbgrader"), "machine": machine}


def limits(result: SubmissionResult) -> dict[str, Any]:
    """The limits that the cells and each exercise ran under; seconds and bytes."""
    runs = {name: exercises.find(name).run for name in result.exercises}
    of_exercises = {
        name: {"wall_s": run.wall_s, "cpu_s": run.cpu_s, "memory_bytes": run.memory_bytes} for name, run in runs.items()
    }
    cells = CellLimits()
    of_cells = {"one_cell_s": cells.one_s, "all_cells_s": cells.all_s, "submission_s": cells.submission_s}
    return {"cells": {**of_cells, "printed_characters": cells.printed}, "exercises": of_exercises}
