"""From a submitted file to a job, and from a job to its result: stored, or made now.

The key of a job says everything that its result depends on, so `grade` may run the jobs of a class in parallel
first and nbgrader finds every result ready. Without that, as from the formgrader's button, it is made on the spot.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nbgrader.utils import parse_utc

from grading.gradebook.course import Course
from grading.rebuild import Merged, Submission, Template, Unreadable, merge, read_submission, steps_of
from grading.rebuild.merge import program_of
from grading.supervisor import Forkserver, Job, SubmissionResult, grade_job
from grading.supervisor.forkserver import InfrastructureFault

TRIES = 2


@dataclass(frozen=True)
class Graded:
    """One submission on its way: its lab's template, the rebuilt cells, the job, and where the result is stored."""

    template: Template
    merged: Merged
    job: Job
    stored: Path


def prepare(course: Course, lab: str, notebook: str, student: str) -> Graded:
    """Read and rebuild a submission. Raises Unreadable, or UserError when the course lacks something."""
    if notebook != lab:
        raise Unreadable(f"{notebook}.ipynb is not the notebook of lab {lab}")
    _check_timestamp(course.submitted(lab, student).parent)
    template = course.template(lab)
    submission = _read(course.submitted(lab, student))
    merged = merge(template, submission)
    job = Job(
        lab=lab,
        student=student,
        attempt=submission.digest,
        steps=tuple(steps_of(merged)),
        program=tuple(program_of(merged)),
        notes=merged.notes,
        course_key=course.key(),
    )
    return Graded(template, merged, job, course.result(lab, job.key))


def _check_timestamp(folder: Path) -> None:
    """nbgrader reads a submission's time from this file, and fails on one that is no time."""
    path = folder / "timestamp.txt"
    if not path.exists():
        return
    try:
        parse_utc(path.read_text().strip())
    except (OSError, ValueError, OverflowError) as error:
        raise Unreadable(f"timestamp.txt is no date: write one like 2026-01-31 12:00:00 UTC ({error})"[:200]) from error


def _read(path: Path) -> Submission:
    try:
        return read_submission(path)
    except Unreadable as error:
        others = sorted(other.name for other in path.parent.glob("*.ipynb") if other != path)
        if others and not path.exists():
            raise Unreadable(f"{error}; the folder has: {', '.join(others)}") from error
        raise


def result_of(work: Graded) -> SubmissionResult:
    """The stored result of a job, or a fresh one, which is stored before it is returned."""
    return read_result(work.stored) or run_and_store(work.job, work.stored)


def read_result(path: Path) -> SubmissionResult | None:
    """A stored result; None where there is none or where it was cut short."""
    try:
        return SubmissionResult.from_json(json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def run_and_store(job: Job, path: Path) -> SubmissionResult:
    """Run a job on this process's forking process and store its result. A fault of ours is tried again once."""
    for left in reversed(range(TRIES)):
        try:
            result = grade_job(_forkserver(), job)
            break
        except InfrastructureFault:
            _drop_forkserver()
            if not left:
                raise
    write_whole(path, json.dumps(result.to_json(), indent=1))
    return result


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


def _drop_forkserver() -> None:
    if _forkserver.cache_info().currsize:
        _forkserver().close()
    _forkserver.cache_clear()


@functools.cache
def _forkserver() -> Forkserver:
    """This process's own: it takes seconds to load, so it is kept until the process ends."""
    forkserver = Forkserver()
    atexit.register(forkserver.close)
    return forkserver
