"""What the demo shows on a terminal: how each student did, and where to look next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grading.demo.folder import COURSE, GRADES, PAGE
from grading.demo.roster import DemoStudent
from grading.report.record import NEEDS_GRADING, NOT_HANDED_IN, ClassRecord, Handin, LabRecord
from grading.terminal import table


def class_lines(record: ClassRecord, students: list[DemoStudent]) -> Iterator[str]:
    """A table for each lab, then the totals."""
    kinds = {student.name: student.kind for student in students}
    for lab in record.labs:
        yield ""
        yield lab.title
        rows = [_row(lab, handin, kinds) for handin in lab.handins if handin.state != NOT_HANDED_IN]
        yield from table(("student", "handed in", "passed", "exercises", "points", "of", "note"), rows)
    totals = record.totals()
    complete = [total for total in totals if total.complete]
    points = sum(total.score for total in complete)
    possible = sum(total.max_score for total in complete)
    yield ""
    yield f"{len(totals)} students, {len(totals) - len(complete)} with work that has no grade (on purpose);"
    share = f", {100 * points / possible:.0f} %" if possible else ""
    yield f"the others have {points:g} of {possible:g} points{share}"
    yield ""


def _row(lab: LabRecord, handin: Handin, kinds: dict[str, str]) -> tuple[object, ...]:
    passed = sum(mark.is_full for mark in handin.marks)
    points = "" if handin.score is None else f"{handin.score:g}"
    return (handin.student, kinds[handin.student], passed, len(lab.items), points, f"{lab.max_score:g}", _note(handin))


def _note(handin: Handin) -> str:
    if handin.score is None:
        return handin.state
    parts = [f"late: -{handin.penalty:g}"] if handin.penalty else []
    outcomes = [mark.outcome for mark in handin.marks]
    parts += [
        f"{outcome} x{outcomes.count(outcome)}"
        for outcome in ("limit", "unanswered", NEEDS_GRADING)
        if outcome in outcomes
    ]
    return ", ".join(parts)


def where_to_look(out: Path, given: Path) -> list[str]:
    """Where everything is, and the commands that do the same by hand. given: the folder as it was asked for."""
    text = f"""report    {out / PAGE}
grades    {out / GRADES}
course    {out / COURSE}
feedback  {out / COURSE / "feedback"}

The same by hand, with submissions under submitted/STUDENT/LAB/:
  python -m grading course my_course && python -m grading release my_course
  python -m grading grade my_course 02 && python -m grading feedback my_course 02
  python -m grading report my_course && python -m grading export my_course --format csv
Look into this one, and grade by hand, with formgrader:
  cd {given / COURSE} && jupyter lab
"""
    return text.split("\n")
