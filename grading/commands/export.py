"""`export DIR --format csv|canvas|moodle|gradescope|nbgrader`: the grades of a course as a file for another program.

Who cannot be written into a platform's file is named, never left out without a word.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.commands.arguments import add_course, add_section
from grading.course import Course
from grading.errors import UserError
from grading.files import write_output
from grading.report.exported import file_name, only_labs, only_sections
from grading.report.formats import FORMATS, ExportOptions
from grading.report.gather import gather_record
from grading.report.moodle import ID_FIELDS
from grading.similar.layout import write_layout
from grading.similar.programs import read_answers
from grading.terminal import say

SIMILARITY = "similarity"
ONLY_FOR = {"roster": "canvas", "id_field": "moodle", "comments": "moodle"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    formats = [*sorted(FORMATS), SIMILARITY]
    parser.add_argument("--format", choices=formats, default="csv", help="default: csv; similarity: the answers alone")
    parser.add_argument("--lab", action="append", help="only this lab (may be given again)")
    add_section(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the file to write (default: one in the course's folder)"
    )
    parser.add_argument(
        "--roster", type=Path, metavar="FILE", help="canvas: a gradebook exported from Canvas, to fill in its ids"
    )
    parser.add_argument(
        "--id-field", choices=sorted(ID_FIELDS), help="moodle: what the student ids are (default: idnumber)"
    )
    parser.add_argument("--comments", action="store_true", help="moodle: a line of feedback for each lab")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    for option, name in ONLY_FOR.items():
        if getattr(args, option) and args.format != name:
            flag = f"--{option.replace('_', '-')}"
            raise UserError(f"{flag} is for --format {name}", f"leave it out with --format {args.format}")
    if args.format == SIMILARITY:
        return _export_answers(course, args)
    record = gather_record(course)
    if args.lab:
        record = only_labs(record, [course.lab(name) for name in args.lab])
    if args.section:
        record = only_sections(record, args.section)
    forms = [] if args.format == "csv" else [args.format]
    labs = [course.lab(name)[:2] for name in args.lab or ()]
    out = args.out or course.root / file_name("grades", ".csv", *forms, *labs, *(args.section or ()))
    options = ExportOptions(args.roster, args.id_field or "idnumber", args.comments)
    exported = FORMATS[args.format](course, record, options)
    write_output(out, exported.text)
    say(*exported.remarks, f"wrote {out}")
    return 0


def _export_answers(course: Course, args: argparse.Namespace) -> int:
    """The answers alone, for JPlag and Dolos: a folder for each lab."""
    if args.section:
        raise UserError("--section is for grades", "leave it out with --format similarity")
    out = args.out or course.root / SIMILARITY
    names = [course.lab(name) for name in args.lab] if args.lab else course.labs()
    labs = [lab for lab in names if course.students(lab)]
    if not labs:
        raise UserError("nobody has handed in anything yet", "export when there are submissions")
    for lab in labs:
        found = read_answers(course, lab)
        n_answers = write_layout(found, out / lab)
        for student, reason in found.unreadable.items():
            say(f"left out: {student} ({lab}): {reason}")
        say(f"wrote {out / lab}: {n_answers} answers to {len(found.exercises)} exercises")
    return 0
