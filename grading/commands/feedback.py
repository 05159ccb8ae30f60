"""`feedback DIR LAB`: nbgrader's feedback pages for every graded submission of a lab."""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.course import Course
from grading.gradebook.feedback import make_feedback
from grading.terminal import say


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
