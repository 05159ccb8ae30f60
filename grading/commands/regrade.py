"""`regrade DIR LAB STUDENT --reason TEXT`: grade one submission anew, and show what changed.

The answers run again whatever is stored. Lower points are written only with --accept-lower.
"""

from __future__ import annotations

import argparse

from grading.commands.arguments import add_course, add_isolation, add_lab, add_student
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.standing import Standing
from grading.pipeline.regrade import Regraded, regrade
from grading.terminal import say, table

NOT_WRITTEN = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    add_lab(parser)
    add_student(parser)
    parser.add_argument(
        "--reason", required=True, metavar="TEXT", help="why: it stands in the course's log, and no student sees it"
    )
    parser.add_argument("--accept-lower", action="store_true", help="write the new points where some are lower, too")
    add_isolation(parser, "as of grade; default: auto")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    reason = args.reason.strip()
    if not reason:
        raise UserError("a regrade needs a reason", 'say why: --reason "the tolerance was too tight"')
    found = regrade(course, lab, args.student, reason, args.isolation, args.accept_lower)
    say(*_table(found), *_verdict(found, args, lab), *found.problems)
    return 0 if found.is_written else NOT_WRITTEN


def _table(found: Regraded) -> list[str]:
    cells = [cell for cell in found.after.auto if _cell(found.before, cell) != _cell(found.after, cell)]
    rows = [(cell, _cell(found.before, cell), _cell(found.after, cell)) for cell in cells]
    if found.before.penalty != found.after.penalty:
        rows.append(("late penalty", f"{found.before.penalty:g}", f"{found.after.penalty:g}"))
    rows.append(("total", f"{found.before.total:g}", f"{found.after.total:g}"))
    return table(("points", "before", "after" if found.is_written else "it would be"), rows)


def _cell(standing: Standing, cell: str) -> str:
    if cell in standing.by_hand:
        return f"{standing.earned(cell):g} by hand"
    return "waits for a person" if standing.auto.get(cell) is None else f"{standing.earned(cell):g}"


def _verdict(found: Regraded, args: argparse.Namespace, lab: str) -> list[str]:
    lines = [f"changed since the earlier grade: {', '.join(found.changes)}"] if found.changes else []
    if found.lower:
        lines.append(f"lower than before: {', '.join(found.lower)}")
    if not found.is_written:
        return [*lines, "nothing was changed; --accept-lower writes the lower points"]
    return [*lines, f"written; next: python -m grading feedback {args.folder} {lab}"]
