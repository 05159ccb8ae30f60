"""`course DIR`: set up an nbgrader course of these labs. `adapt DIR`: make its sources anew, as its `course.toml` says.
`release DIR`: make the students' version of a lab.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.commands.arguments import add_course
from grading.course import Course
from grading.course_file import NAME
from grading.errors import UserError
from grading.gradebook.setup import release, set_up
from grading.gradebook.sources import outdated, renew_sources
from grading.intake.exchange import release_to_exchange
from grading.terminal import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of `course`."""
    add_course(parser, "the new folder")
    parser.add_argument("--id", metavar="NAME", help="the course's name for nbgrader (default: the folder's name)")
    parser.add_argument(
        "--db",
        metavar="URL",
        help="a PostgreSQL database for the gradebook, like postgresql://user@host/database; the password belongs in "
        "~/.pgpass or PGPASSWORD (default: a SQLite file in the course's folder)",
    )
    parser.add_argument("--adapt", type=Path, metavar="FILE", help="a course.toml: other points, exercises left out")
    parser.set_defaults(run=run_course)


def add_adapt_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of `adapt`."""
    add_course(parser)
    parser.set_defaults(run=run_adapt)


def add_release_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of `release`."""
    add_course(parser)
    parser.add_argument("labs", nargs="*", metavar="LAB", help='"02" or "02_float_formats" (default: all)')
    parser.add_argument("--exchange", action="store_true", help="also put them where `nbgrader fetch_assignment` looks")
    parser.add_argument(
        "--as-it-is",
        action="store_true",
        help="also where a notebook under source/ is not what this repository makes now, because you edited it there",
    )
    parser.set_defaults(run=run_release)


def run_course(args: argparse.Namespace) -> int:
    course = set_up(args.folder, args.id or args.folder.resolve().name, args.db, file=args.adapt)
    say(f"course in {course.root}: {len(course.labs())} labs under source/")
    say(f"next: python -m grading release {args.folder}")
    return 0


def run_adapt(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    with course.locked():
        states = renew_sources(course)
    changed = [lab for lab, state in states.items() if state != "same"]
    say(*(f"{lab}: {states[lab]}" for lab in changed), f"{len(states) - len(changed)} as before")
    for lab in sorted(set(course.labs()) - set(states)):
        say(f"{lab} is no lab of {NAME}: its source stays; remove {course.source(lab).parent} where you do not want it")
    if changed:
        say(f"next: python -m grading release {args.folder} {' '.join(changed)}")
    return 0


def run_release(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    labs = [course.lab(name) for name in args.labs] or course.labs()
    if not args.as_it_is and (old := outdated(course, labs)):
        raise UserError(
            f"nothing was released: {', '.join(old)} in {course.root / 'source'} is not what this repository makes now",
            f"python -m grading adapt {args.folder} makes it anew, and keeps a copy; where you edited the notebook by "
            "hand and want it so, add --as-it-is",
        )
    release(course, labs)
    for lab in labs if args.exchange else ():
        say(f"in the exchange: {release_to_exchange(course, lab)}")
    return 0
