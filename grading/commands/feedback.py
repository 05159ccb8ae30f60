"""`feedback DIR LAB`: nbgrader's feedback pages for every graded submission of a lab."""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.commands.shared import progress_bar, say
from grading.course import Course
from grading.errors import UserError
from grading.nbgrader_api import NbgraderFailed, expect_success, open_api


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path)
    parser.add_argument("lab", help='"02" or "02_float_formats"')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    made = make_feedback(course, lab)
    say(f"{made} feedback pages under {course.root / 'feedback'}")
    return 0


def make_feedback(course: Course, lab: str) -> int:
    """Make the pages that are missing or older than their graded notebook; returns how many there are now."""
    students = [student for student in course.students(lab) if course.autograded(lab, student).is_file()]
    api = open_api(course)
    failed = []
    with progress_bar() as bar:
        for student in bar.track(students, description="feedback"):
            page, graded = course.feedback(lab, student), course.autograded(lab, student)
            if page.is_file() and page.stat().st_mtime_ns >= graded.stat().st_mtime_ns:
                continue
            try:
                expect_success(course, api.generate_feedback(lab, student, force=True))
            except NbgraderFailed as error:
                failed.append(f"{student} ({error})")
    if failed:
        raise UserError(f"{len(failed)} feedback pages could not be made", "; ".join(failed))
    return len(students)
