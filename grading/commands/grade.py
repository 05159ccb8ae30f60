"""`grade DIR LAB`: grade every submission of a lab, and write the grades into nbgrader's gradebook.

What is graded already and has not changed is left as it is, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse

from grading.commands.arguments import add_course, add_lab, add_workers
from grading.course import Course
from grading.errors import UserError
from grading.executors import start_loading
from grading.gradebook.provenance import recorded_basis
from grading.isolation import CHOICES, select_tier
from grading.pipeline import Interrupted, grade_lab
from grading.pipeline.interrupt import INTERRUPTED
from grading.results import Ungraded, read_result
from grading.terminal import say, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    add_lab(parser)
    parser.add_argument("--student", action="append", help="only this student (may be given again)")
    add_workers(parser)
    parser.add_argument(
        "--isolation",
        choices=CHOICES,
        default="auto",
        help="how students' programs are kept apart from this machine: layered (a sandbox for each worker and, in it, "
        "one for each job), bwrap (a fresh sandbox for each submission: slower, for examinations), kernel (without the "
        "program bwrap), none (default: the first of these that works here, and never none)",
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="grade on a Dask cluster: its scheduler's address or file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.workers < 1:
        raise UserError("no submission can be graded without a worker", "give --workers 1 or more")
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    course.expect_handed_in(lab, args.student or ())
    students = list(dict.fromkeys(args.student or course.students(lab)))
    if not students:
        say(f"no submissions of {lab}: nothing is under {course.root / 'submitted'}/STUDENT/{lab}/")
        return 0
    if args.cluster is None and any(not course.autograded(lab, student).exists() for student in students):
        # There is something to run, for certain: its judge can load while all else is made ready.
        start_loading()
    say(_isolation_line(args.isolation, args.cluster))
    try:
        outcome = grade_lab(course, lab, students, args.workers, args.isolation, args.cluster)
    except Interrupted as stopped:
        say(str(stopped))
        return INTERRUPTED
    print_summary(course, lab, students, outcome.ungraded)
    say(*outcome.tally.summary(), *outcome.problems, *outcome.remarks)
    say(f"next: python -m grading report {args.folder}, and python -m grading feedback {args.folder} {args.lab}")
    return 1 if outcome.ungraded or outcome.problems else 0


def _isolation_line(asked: str, cluster: str | None) -> str:
    if cluster is not None:
        return f"isolation: {asked}, on each host of the cluster"
    tier = select_tier(asked)
    if not tier.isolates:
        return "isolation: NONE - students' programs run with your rights on this machine"
    return f"isolation: {tier.name}"


def print_summary(course: Course, lab: str, students: list[str], ungraded: list[Ungraded]) -> None:
    without = {item.student: item for item in ungraded}
    rows = []
    for student in students:
        if student in without:
            rows.append((student, "", "", without[student].outcome))
            continue
        key = recorded_basis(course.autograded(lab, student)).job
        result = read_result(course.result(lab, key)) if key else None
        outcomes = [item.outcome for item in result.exercises.values()] if result else []
        rows.append((student, outcomes.count("passed"), len(outcomes), _worst(outcomes)))
    say(*table(("student", "passed", "exercises", "note"), rows))
    for item in ungraded:
        say(f"{item.student}: {item.reason}")


def _worst(outcomes: list[str]) -> str:
    return next((name for name in ("infrastructure", "suspected", "limit") if name in outcomes), "")
