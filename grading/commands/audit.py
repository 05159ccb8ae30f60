"""`audit DIR`: is the log whole, do the grades equal it, are the files those that it names; and how came a grade?

It changes nothing. `--head` prints the log's end to be written down elsewhere, and `--expect`
says later whether the log still begins with what had been written by then.
"""

from __future__ import annotations

import argparse
from collections import Counter

from grading.audit.compare import LabStudent, differences, file_problems, given_by_hand, read_rows
from grading.audit.story import story_of
from grading.commands.arguments import add_course
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.standing import Standing
from grading.log import Log, LogEntry
from grading.log.grades import last_grades
from grading.terminal import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    parser.add_argument("--lab", help='only this lab: "02" or "02_float_formats"')
    parser.add_argument("--student", help="only this student, with the story of each grade")
    parser.add_argument("--head", action="store_true", help="print where the log ends, to be written down elsewhere")
    parser.add_argument("--expect", metavar="HEAD", help="check that the log still holds what it held at this head")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab) if args.lab else None
    log = Log(course)
    if args.head:
        say(log.head().short(course.key()))
        return 0
    problems = log.verify()
    if args.expect:
        problems += log.problems_since(args.expect)
    entries = [entry for entry in log.entries() if _is_asked(entry, lab, args.student)]
    rows = {who: row for who, row in read_rows(course).items() if _is_of(who, lab, args.student)}
    last = last_grades(entries)
    found = differences(rows, last) + file_problems(course, (entry for entry in entries if entry.kind == "graded"))
    if args.student and not (rows or entries):
        raise UserError(f'nothing is known of anybody called "{args.student}"', "give their id in the course")
    if args.student:
        for name in sorted({who[0] for who in (*rows, *last)} | {entry.facts.get("lab", "") for entry in entries}):
            say(*story_of(name, args.student, entries, rows.get((name, args.student))))
    _report(problems, found, rows, last)
    return 1 if problems or found else 0


def _is_asked(entry: LogEntry, lab: str | None, student: str | None) -> bool:
    return _is_of((entry.facts.get("lab", ""), entry.facts.get("student", "")), lab, student)


def _is_of(who: LabStudent, lab: str | None, student: str | None) -> bool:
    return lab in (None, who[0]) and student in (None, who[1])


def _report(
    problems: list[str],
    found: list[tuple[LabStudent, str]],
    rows: dict[LabStudent, Standing],
    last: dict[LabStudent, LogEntry],
) -> None:
    say(*(f"log: {problem}" for problem in problems))
    say(*(f"{lab}, {student}: {text}" for (lab, student), text in found))
    by_hand = Counter(who for who, row in rows.items() for _ in given_by_hand(row, last.get(who)))
    if by_hand:
        cells = f"{by_hand.total()} cells of {len(by_hand)} submissions"
        say(f"{cells} have points given by a person, which the log does not cover")
    say("log: " + (f"{len(problems)} problems" if problems else "every entry is there, unchanged and in order"))
    wrong = {who for who, _ in found}
    agree = len(last.keys() - wrong)
    say(f"grades: {agree} of {len(last.keys() | wrong)} agree with the log, and so do their files")
