"""`explain DIR LAB STUDENT [EXERCISE]`: a second look at one student, for the instructor's eyes.

It shows what students are not shown, the hidden cases too. By default it reads the stored verdicts, which tell of the
first failing case; with `--rerun` the answers run again, isolated, and every failing case is shown with what came
back. No grade changes.
"""

from __future__ import annotations

import argparse

from grading.commands.arguments import add_course, add_isolation, add_lab, add_student
from grading.course import Course
from grading.errors import UserError
from grading.explain.submission import (
    exercises_of,
    find_submission,
    fresh_failures,
    result_path_of,
    stored_failures,
)
from grading.explain.text import exercise_lines, labelled, submission_lines
from grading.results import read_result
from grading.terminal import say
from labkit import exercises


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    add_lab(parser)
    add_student(parser)
    parser.add_argument("exercise", nargs="?", metavar="EXERCISE", help='only this exercise: "02-decode"')
    parser.add_argument("--rerun", action="store_true", help="run the answers again, isolated, and show every case")
    add_isolation(parser, "for --rerun; default: auto")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    prepared = find_submission(course, lab, args.student)
    known = exercises_of(prepared)
    if args.exercise and args.exercise not in known:
        raise UserError(f'lab {lab} has no exercise "{args.exercise}"', f"it has: {', '.join(known) or 'none'}")
    names = [args.exercise] if args.exercise else known
    path, remark = result_path_of(course, prepared)
    result = read_result(path)
    if args.rerun:
        failures = fresh_failures(prepared, names, args.isolation)
    elif result is not None:
        failures = stored_failures(prepared, names, result)
    else:
        remedy = f"run `grade {args.folder} {args.lab} --student {args.student}` first, or add --rerun"
        raise UserError(f"this submission of {args.student} has no stored result", remedy)
    say(*submission_lines(course, prepared, result, path), *(labelled("note", remark) if remark else ()))
    for name in names:
        say("", *exercise_lines(exercises.find(name), prepared, result, failures[name]))
    return 0
