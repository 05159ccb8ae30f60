"""From a submitted file to a submission that is ready to be run: its cells in the lab's template, and its job.

The key of a job says everything that its result depends on, so `grade` may run the jobs of a class in parallel
and nbgrader finds every result ready. Nothing is run here.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from pathlib import Path

from grading.aside import do_aside
from grading.course import Course
from grading.files import Unreadable, read_plain_file
from grading.intake.names import wrong_with_student
from grading.intake.store import archived_path
from grading.intake.timestamp import read_time
from grading.rebuild import Merged, Submission, Template, read_submission, steps_of
from grading.rebuild.merge import merge, program_of
from grading.rebuild.submission import MAX_BYTES, digest_of
from grading.supervisor import Job
from grading.worker.protocol.steps import Step
from labkit import exercises

MAX_OTHERS = 5
"""Names of other notebooks that a message shows."""


@dataclass(frozen=True)
class Prepared:
    """One submission, ready to be run: its lab's template, the rebuilt cells, the job, and where its result belongs.

    handed_in: the time that is noted beside it, in UTC; None where none is.

    Prepared(
        Template("02_float_formats", cells=(TemplateCell("02-decode", "answer", …), …), notebook=…),
        Merged(cells=(MergedCell("02-decode", "code", "def decode(…): …", "answer", …), …), notes=()),
        Job("02_float_formats", "ada", attempt="9c1e…", steps=(…), program=("def decode(…): …", …), …),
        Path("/course/.grading/results/02_float_formats/5f3c….json"),
    )
    """

    template: Template
    merged: Merged
    job: Job
    result_path: Path
    handed_in: datetime.datetime | None = None


def attempt_of(course: Course, lab: str, student: str) -> str:
    """The digest of what is submitted, as the prepared submission's job has it; nothing else of the file is looked at.

    Raises Unreadable where there is no plain file of bounded size, OSError where this machine is at fault.
    """
    return digest_of(read_plain_file(course.submitted(lab, student), MAX_BYTES))


def prepare(course: Course, lab: str, notebook: str, student: str) -> Prepared:
    """Read and rebuild a submission.

    Raises Unreadable for what is the student's to mend, UserError when the course lacks something, and OSError where
    this machine is at fault.
    """
    if wrong := wrong_with_student(student):
        raise Unreadable(f"{wrong}: rename the folder")
    if notebook != lab:
        raise Unreadable(f"{notebook}.ipynb is not the notebook of lab {lab}")
    path = course.submitted(lab, student)
    # nbgrader takes the time from there too, and fails on one that is no time.
    handed_in = read_time(path.parent)
    return replace(_prepared(course, lab, student, path), handed_in=handed_in)


def prepare_archived(course: Course, lab: str, student: str, digest: str) -> Prepared:
    """As `prepare`, of what this student handed in under this SHA-256, maybe long ago.

    Raises Unreadable also where the archive no longer holds it.
    """
    prepared = _prepared(course, lab, student, archived_path(course, lab, digest))
    if prepared.job.attempt != digest:
        raise Unreadable(f"{digest[:12]}.ipynb in the archive is not what was handed in: restore it from a backup")
    return prepared


def _prepared(course: Course, lab: str, student: str, path: Path) -> Prepared:
    template, course_key = course.template(lab), course.key()
    # PyTorch is loaded here, once, and not in every child.
    _ = [exercises.find(cell.exercise) for cell in template.exercises if cell.exercise]
    digest, merged, steps, program = do_aside(path.name, _taken_apart, path, template)
    job = Job(lab, student, digest, steps, program, merged.notes, course_key)
    return Prepared(template, merged, job, course.result(lab, job.key))


def _taken_apart(path: Path, template: Template) -> tuple[str, Merged, tuple[Step, ...], tuple[str, ...]]:
    """The digest of what was handed in, its cells in the template, its steps and its program. Raises Unreadable."""
    submission = _read(path)
    try:
        merged = merge(template, submission)
        return submission.digest, merged, tuple(steps_of(merged)), tuple(program_of(merged))
    except Exception as error:
        # One file must not keep the rest of the class from its grades, whatever is in it.
        raise Unreadable(f"it cannot be taken apart ({type(error).__name__}): look at the file") from error


def _read(path: Path) -> Submission:
    try:
        return read_submission(path)
    except Unreadable as error:
        others = sorted(other.name for other in path.parent.glob("*.ipynb") if other != path)
        if others and not path.exists():
            more = f" and {len(others) - MAX_OTHERS:,} more" if len(others) > MAX_OTHERS else ""
            raise Unreadable(f"{error}; the folder has: {', '.join(others[:MAX_OTHERS])}{more}") from error
        raise
