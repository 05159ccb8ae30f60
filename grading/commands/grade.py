"""`grade DIR LAB`: grade every submission of a lab, and write the grades into nbgrader's gradebook.

First the jobs run, in parallel, and every result is stored as it comes; then one writer takes them to nbgrader. Both
halves skip what is already there, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

from grading.commands.jobs import Ungraded, run_jobs
from grading.commands.shared import progress_bar, say, table
from grading.errors import UserError
from grading.gradebook.course import Course
from grading.gradebook.nbgrader import NbgraderFailed, expect_success, open_api
from grading.gradebook.outputs import JOB_KEY
from grading.gradebook.standing import Standing
from grading.gradebook.work import Graded, prepare, read_result
from grading.rebuild import Unreadable

NOT_A_NAME = re.compile(r"[*?\[\]\x00-\x1f\ud800-\udfff]")
"""Given to nbgrader, a student "a*" would stand for everybody whose name begins with an a."""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("grade", help="grade the submissions of a lab")
    parser.add_argument("folder", type=Path)
    parser.add_argument("lab", help='"02" or "02_float_formats"')
    parser.add_argument("--student", action="append", help="only this student (may be given again)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="submissions graded at a time")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    students = args.student or course.students(lab)
    if not students:
        say(f"no submissions of {lab}: nothing is under {course.root / 'submitted'}/STUDENT/{lab}/")
        return 0
    ungraded = grade(course, lab, students, args.workers)
    print_summary(course, lab, students, ungraded)
    return 1 if ungraded else 0


def grade(course: Course, lab: str, students: list[str], workers: int) -> list[Ungraded]:
    """Grade these students' submissions; returns those that got no grade, with the reason.

    Raises UserError while another run grades this course.
    """
    with course.locked():
        course.key()
        ready, ungraded = {}, []
        for student in students:
            try:
                ready[student] = _prepared(course, lab, student)
            except Unreadable as error:
                ungraded.append(Ungraded(student, "unreadable", str(error)))
        ungraded += run_jobs(list(ready.values()), workers)
        failed = {item.student for item in ungraded}
        ungraded += _write(course, lab, [work for student, work in ready.items() if student not in failed])
        store_ungraded(course, lab, students, ungraded)
    return ungraded


def _prepared(course: Course, lab: str, student: str) -> Graded:
    if NOT_A_NAME.search(student):
        raise Unreadable(f"nbgrader cannot take the name {student!a}: rename the folder")
    try:
        return prepare(course, lab, lab, student)
    except (Unreadable, UserError):
        raise
    except Exception as error:
        # One file must not keep the rest of the class from its grades, whatever is in it.
        raise Unreadable(f"it cannot be taken apart ({type(error).__name__}): look at the file") from error


def _write(course: Course, lab: str, works: list[Graded]) -> list[Ungraded]:
    faults = []
    api = open_api(course)
    standing = Standing.of(course, lab, api.coursedir.db_url)
    with progress_bar() as bar:
        for work in bar.track(works, description="writing"):
            student = work.job.student
            written = _written(course, lab, student)
            if student in standing.students and written == (work.job.key, standing.of_student(work)):
                continue
            try:
                expect_success(course, api.autograde(lab, student, force=True, create=True))
            except NbgraderFailed as error:
                faults.append(Ungraded(student, "infrastructure", str(error)))
    return faults


def written_key(course: Course, lab: str, student: str) -> str | None:
    """The key of the job whose result is in the graded notebook; None where there is no graded notebook."""
    return _written(course, lab, student)[0]


def _written(course: Course, lab: str, student: str) -> tuple[str | None, str | None]:
    try:
        notes = json.loads(course.autograded(lab, student).read_text())["metadata"][JOB_KEY]
    except (OSError, ValueError, KeyError, TypeError):
        return None, None
    return notes.get("job"), notes.get("standing")


def store_ungraded(course: Course, lab: str, students: list[str], ungraded: list[Ungraded]) -> None:
    """Remember who got no grade and why, for the report; entries of other students stay."""
    path = course.root / ".grading" / f"ungraded-{lab}.json"
    kept = {name: entry for name, entry in read_ungraded(course, lab).items() if name not in students}
    kept.update({item.student: {"outcome": item.outcome, "reason": item.reason} for item in ungraded})
    path.write_text(json.dumps(kept, indent=1, sort_keys=True))


def read_ungraded(course: Course, lab: str) -> dict[str, dict[str, str]]:
    """Who got no grade at the last try: {student: {"outcome": ..., "reason": ...}}."""
    try:
        return json.loads((course.root / ".grading" / f"ungraded-{lab}.json").read_text())
    except (OSError, ValueError):
        return {}


def print_summary(course: Course, lab: str, students: list[str], ungraded: list[Ungraded]) -> None:
    without = {item.student: item for item in ungraded}
    rows = []
    for student in students:
        if student in without:
            rows.append((student, "", "", without[student].outcome))
            continue
        key = written_key(course, lab, student)
        result = read_result(course.result(lab, key)) if key else None
        outcomes = [item.outcome for item in result.exercises.values()] if result else []
        rows.append((student, outcomes.count("passed"), len(outcomes), _worst(outcomes)))
    say(table(("student", "passed", "exercises", "note"), rows))
    for item in ungraded:
        say(f"{item.student}: {item.reason}")


def _worst(outcomes: list[str]) -> str:
    return next((name for name in ("infrastructure", "suspected", "limit") if name in outcomes), "")
