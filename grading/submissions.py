"""From a submitted file to a job, and from a job to where its result is stored.

The key of a job says everything that its result depends on, so `grade` may run the jobs of a class in parallel
and nbgrader finds every result ready. Without that, as from the formgrader's button, it is made on the spot.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grading.course import Course
from grading.intake.timestamp import read_time
from grading.isolation import isolates
from grading.rebuild import Merged, Submission, Template, Unreadable, merge, read_submission, steps_of
from grading.rebuild.merge import program_of
from grading.supervisor import Job, SubmissionResult
from grading.supervisor.run import run

NOT_A_NAME = re.compile(r"[*?\[\]\x00-\x1f\ud800-\udfff]")
"""Given to nbgrader, a student "a*" would stand for everybody whose name begins with an a."""


@dataclass(frozen=True)
class Graded:
    """One submission on its way: its lab's template, the rebuilt cells, the job, and where the result is stored."""

    template: Template
    merged: Merged
    job: Job
    stored: Path


def prepare(course: Course, lab: str, notebook: str, student: str) -> Graded:
    """Read and rebuild a submission.

    Raises Unreadable for what is the student's to mend, UserError when the course lacks something, and OSError where
    this machine is at fault.
    """
    if NOT_A_NAME.search(student):
        raise Unreadable(f"nbgrader cannot take the name {student!a}: rename the folder")
    if notebook != lab:
        raise Unreadable(f"{notebook}.ipynb is not the notebook of lab {lab}")
    path, template, course_key = course.submitted(lab, student), course.template(lab), course.key()
    # nbgrader takes the time from there too, and fails on one that is no time.
    read_time(path.parent)
    submission = _read(path)
    try:
        merged = merge(template, submission)
        steps, program = tuple(steps_of(merged)), tuple(program_of(merged))
    except Exception as error:
        # One file must not keep the rest of the class from its grades, whatever is in it.
        raise Unreadable(f"it cannot be taken apart ({type(error).__name__}): look at the file") from error
    job = Job(lab, student, submission.digest, steps, program, merged.notes, course_key)
    return Graded(template, merged, job, course.result(lab, job.key))


def _read(path: Path) -> Submission:
    try:
        return read_submission(path)
    except Unreadable as error:
        others = sorted(other.name for other in path.parent.glob("*.ipynb") if other != path)
        if others and not path.exists():
            raise Unreadable(f"{error}; the folder has: {', '.join(others)}") from error
        raise


def result_of(course: Course, work: Graded, isolation: str) -> SubmissionResult:
    """The stored result of a job, or a fresh one, which is stored before it is returned.

    isolation is a tier or "auto". Raises InfrastructureFault.
    """
    found = read_result(work.stored, may_be_none=not isolates(isolation))
    return found or store(course, run(work.job, isolation))


def read_result(path: Path, may_be_none: bool = True) -> SubmissionResult | None:
    """A stored result; None where there is none, where it was cut short, or where it was made without isolation and
    `may_be_none` is false.
    """
    try:
        result = SubmissionResult.from_json(json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return result if may_be_none or isolates(result.isolation) else None


def store(course: Course, result: dict) -> SubmissionResult:
    """Store what `run` returned, under the key that it bears. Raises OSError."""
    path = course.result(result["lab"], result["key"])
    write_whole(path, json.dumps(result, indent=1))
    return SubmissionResult.from_json(result)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all, whatever happens in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
