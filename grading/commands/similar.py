"""`similar DIR LAB`: which answers of a class are more alike than honest ones, side by side on one page.

It needs the extra `similarity`. Nothing is run and no grade changes; what a pair means, a person has to find out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.commands.arguments import add_course, add_lab
from grading.course import Course
from grading.errors import UserError
from grading.files import write_output
from grading.similar.detector import require_detector
from grading.similar.page import as_page
from grading.similar.pairs import compare_class
from grading.similar.programs import read_answers
from grading.terminal import say, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    add_lab(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the page (default: similar-LAB.html in the course's folder)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    require_detector()
    if not course.students(lab):
        raise UserError(f"nobody has handed in {lab}", "collect submissions first")
    found = read_answers(course, lab)
    compared = compare_class(found)
    out = args.out or course.root / f"similar-{lab}.html"
    write_output(out, as_page(found, compared))
    rows = [
        (each.exercise, each.n_pairs, f"{each.honest.limit:.0%}", len(each.groups), len(each.pairs))
        for each in compared
        if not each.honest.left_out
    ]
    if rows:
        say(*table(("exercise", "pairs", "shown from", "the same", "shown"), rows))
    for each in compared:
        if each.honest.left_out:
            say(f"left out: {each.exercise}: {each.honest.left_out}")
    for student, reason in found.unreadable.items():
        say(f"{student}: {reason}")
    say("a pair is no proof of copying: a person decides", f"wrote {out}")
    return 0
