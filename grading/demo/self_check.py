"""Does the record say of every demo student what is known beforehand? Returns what does not fit, in words."""

from __future__ import annotations

from collections.abc import Iterator

from grading.demo.handins import DemoSubmission
from grading.demo.roster import DemoStudent
from grading.demo.sample import Expected
from grading.report.record import GRADED, NOT_HANDED_IN, ClassRecord, Handin


def unexpected_grades(record: ClassRecord, students: list[DemoStudent], expected: Expected) -> list[str]:
    """One line for each grade that is not as it should be; none when all is well."""
    late = {student.name for student in students if student.days_late}
    waiting = {student.name for student in students if student.waits}
    found = []
    recorded = set()
    for handin in record.handins:
        recorded.add((handin.lab, handin.student))
        if (handin.lab, handin.student) in expected:
            made = expected[handin.lab, handin.student]
            found += _wrong(handin, made, handin.student in late, handin.student in waiting)
        elif handin.state != NOT_HANDED_IN:
            found.append(f"{handin.lab}, {handin.student}: {handin.state}, but nothing was handed in")
    return [*found, *(f"{lab}, {student}: is not in the record" for lab, student in sorted(set(expected) - recorded))]


def _wrong(handin: Handin, made: DemoSubmission, is_late: bool, waits: bool) -> Iterator[str]:
    where = f"{handin.lab}, {handin.student}"
    if made.earns is None:
        if handin.state != "unreadable":
            yield f"{where}: {handin.state}, but the file cannot be read"
        return
    if handin.state != GRADED:
        yield f"{where}: {handin.state}: {handin.reason}"
        return
    for mark in handin.marks:
        share = 1.0 if mark.item.id in made.earns else 0.0 if waits else made.by_hand.get(mark.item.id, 0.0)
        due = share * mark.item.most
        if mark.score != due:
            why = f"{mark.outcome}: {mark.hint}" if mark.hint else mark.outcome
            yield f"{where}: {mark.score:g} points for {mark.item.id} instead of {due:g} ({why})"
        if mark.waiting != (waits and mark.item.id in made.by_hand):
            yield f"{where}: {mark.item.id} {'waits' if mark.waiting else 'does not wait'} for a person"
    if bool(handin.penalty) != (is_late and bool(made.earns)):
        yield f"{where}: a late penalty of {handin.penalty:g}"
