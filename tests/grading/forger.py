"""A worker's job that forges: of mallory's submissions it says that they are somebody else's, or are worth something.

Workers of a cluster import it by its name. What it forges stands in a file that the worker's environment names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from grading.supervisor.job import Job
from grading.supervisor.run import run_as_asked

FILE = "FORGED_RESULT"
"""The variable with the path of a file: `{"mallory-1": {"student": "ada", "key": "5f3c…"}, "mallory-2": 7}`."""


def run_and_forge(job: Job, isolation: str) -> object:
    """The job's result, with the fields that the file has for its student, or that thing in its place."""
    forged = json.loads(Path(os.environ[FILE]).read_text())
    result = run_as_asked(job, isolation)
    if job.student not in forged:
        return result
    fields = forged[job.student]
    return {**result, **fields} if isinstance(fields, dict) and fields else fields
