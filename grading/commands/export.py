"""`export DIR --format csv`: the grades of a course as a file for another program."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from grading.commands.shared import say
from grading.gradebook.course import Course
from grading.report.collect import collect
from grading.report.csv_table import as_csv
from grading.report.files import write_file
from grading.report.record import ClassRecord

FORMATS: dict[str, Callable[[ClassRecord], str]] = {"csv": as_csv}
"""By the name of the format, which is the file's suffix too: from the record of a class to the file's text."""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("export", help="write the grades to a file")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", choices=sorted(FORMATS), default="csv", help="default: csv")
    parser.add_argument("--out", type=Path, help="the file to write (default: grades.csv in the course's folder)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    out = args.out or course.root / f"grades.{args.format}"
    write_file(out, FORMATS[args.format](collect(course)))
    say(f"wrote {out}")
    return 0
