"""`report DIR`: one page about the class, which opens in any browser and needs nothing else."""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.commands.arguments import add_course, add_section
from grading.course import Course
from grading.files import write_output
from grading.report.exported import file_name, only_sections
from grading.report.gather import gather_record
from grading.report.html import as_page
from grading.terminal import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="the file to write (default: report.html in the course's folder, report-A.html of section A)",
    )
    add_section(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    out = args.out or course.root / file_name("report", ".html", *(args.section or ()))
    record = gather_record(course)
    if args.section:
        record = only_sections(record, args.section)
    write_output(out, as_page(record, out))
    say(f"wrote {out}")
    return 0
