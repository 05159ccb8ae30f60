"""`feedback DIR LAB [--exchange]`: feedback pages for every graded submission of a lab, on request to the students."""

from __future__ import annotations

import argparse

from grading.commands.arguments import add_course, add_lab
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.feedback import make_feedback
from grading.intake.exchange import release_feedback_to_exchange
from grading.terminal import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    add_lab(parser)
    parser.add_argument("--exchange", action="store_true", help="also put them where `nbgrader fetch_feedback` looks")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    made = make_feedback(course, lab)
    if not made:
        remedy = f"python -m grading grade {args.folder} {args.lab}"
        if not course.students(lab):
            remedy = "collect submissions, then " + remedy
        raise UserError(f"there is no graded submission of {lab} to make a page of", remedy)
    say(f"{made} feedback pages under {course.root / 'feedback'}")
    if args.exchange:
        others = release_feedback_to_exchange(course, lab)
        say(f"{made - len(others)} of them are in the exchange, for each student the own page alone")
        if others:
            say(f"not handed in through it, so hand it back another way: {', '.join(others)}")
    return 0
