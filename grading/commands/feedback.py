"""`feedback DIR LAB [--exchange]`: feedback pages for every graded submission of a lab, on request to the students."""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.course import Course
from grading.gradebook.feedback import make_feedback
from grading.intake.exchange import release_feedback_to_exchange
from grading.terminal import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path)
    parser.add_argument("lab", help='"02" or "02_float_formats"')
    parser.add_argument("--exchange", action="store_true", help="also put them where `nbgrader fetch_feedback` looks")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    made = make_feedback(course, lab)
    say(f"{made} feedback pages under {course.root / 'feedback'}")
    if args.exchange:
        others = release_feedback_to_exchange(course, lab)
        say(f"{made - len(others)} of them are in the exchange, for each student the own page alone")
        if others:
            say(f"not handed in through it, so hand it back another way: {', '.join(others)}")
    return 0
