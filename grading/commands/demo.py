"""`demo`: the main job on real input, from the course's sources to the graded class and its report.

It checks itself: what each of its students earns is known beforehand, and a grade that differs is exit code 1.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grading.commands.arguments import add_workers
from grading.course import Course
from grading.demo.answers import require_known
from grading.demo.by_hand import grade_by_hand
from grading.demo.folder import COURSE, GRADES, PAGE, claim
from grading.demo.roster import FULL, SMALLEST, roster
from grading.demo.sample import fill_course
from grading.demo.self_check import unexpected_grades
from grading.demo.text import class_lines, where_to_look
from grading.errors import UserError
from grading.files import write_output
from grading.gradebook.feedback import make_feedback
from grading.gradebook.setup import release, set_up
from grading.isolation import select_tier
from grading.isolation.tiers import NONE
from grading.pipeline import grade_lab
from grading.report.csv_table import as_csv
from grading.report.gather import gather_record
from grading.report.html import as_page
from grading.terminal import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", default=Path("build/demo"), help="where to put it (default: build/demo)"
    )
    parser.add_argument("--students", type=int, default=FULL, metavar="N", help=f"size of the class (default: {FULL})")
    parser.add_argument(
        "--labs", metavar="LAB,LAB", default="00,02", help="which labs to grade, or all (default: 00,02)"
    )
    add_workers(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.students < SMALLEST or args.workers < 1:
        raise UserError(f"the demo needs {SMALLEST} students and a worker", "give --students and --workers accordingly")
    require_known()
    # absolute, not resolved: a link is refused, not followed.
    out: Path = args.out.absolute()
    claim(out)
    students = roster(args.students)
    with _timed("course set up"):
        course = set_up(out / COURSE, "demo")
        _leave_out_others(course, args.labs)
        release(course, course.labs())
    with _timed(f"{len(students)} students handed in"):
        expected = fill_course(course, students)
    isolation = _isolation()
    for lab in course.labs():
        with _timed(f"{lab} graded"):
            grade_lab(course, lab, course.students(lab), args.workers, isolation)
    say(f"{grade_by_hand(course, students, expected)} answers graded by hand")
    for lab in course.labs():
        with _timed(f"{lab} feedback pages made"):
            make_feedback(course, lab)
    record = gather_record(course)
    write_output(out / GRADES, as_csv(record))
    write_output(out / PAGE, as_page(record, out / PAGE))
    say(*class_lines(record, students))
    found = unexpected_grades(record, students, expected)
    say(*(f"NOT AS EXPECTED  {line}" for line in found))
    say(*where_to_look(out, args.out))
    say("the demo FAILED its own check" if found else "every grade is as it should be")
    return 1 if found else 0


def _leave_out_others(course: Course, labs: str) -> None:
    """Take the labs that were not asked for out of the course: grading them all takes many minutes."""
    if labs == "all":
        return
    wanted = [course.lab(name) for name in labs.split(",")]
    for lab in course.labs():
        if lab not in wanted:
            shutil.rmtree(course.root / "source" / lab)
    say(f"labs: {', '.join(wanted)} (others with --labs, every one with --labs all)")


def _isolation() -> str:
    """The tier that "auto" takes here; none where none does, for these samples are our own."""
    try:
        tier = select_tier("auto")
    except UserError as error:
        say(f"isolation: NONE, which is safe for the demo's own samples ({error})")
        return NONE.name
    say(f"isolation: {tier.name}")
    return tier.name


@contextmanager
def _timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    say(f"{what} in {time.monotonic() - began:.1f} s")
