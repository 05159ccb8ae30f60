"""Take in what arrived: choose each student's newest notebook, put it in its place, and note what became of each file.

One refused file never keeps the others out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grading.course import Course
from grading.intake.accept import SECONDS, UNCHANGED, accept, names_in
from grading.intake.arrived import Arrivals, Refusal, RefusedFile
from grading.intake.choose import ReadingOptions, choose
from grading.intake.history import read_history


@dataclass
class Intake:
    """What one run took in: rows of the table, and what was refused, by path."""

    platform: str
    rows: list[tuple[str, str, int | str, str, str]] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    passed_over: list[RefusedFile] = field(default_factory=list)
    changed: int = 0
    missing: list[str] = field(default_factory=list)


def take_in(
    course: Course,
    lab: str,
    arrivals: Arrivals,
    options: ReadingOptions,
    source: str,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Intake:
    """Choose and accept. Raises UserError where the platform is unclear; a refused file is only reported."""
    choice, history, names = choose(arrivals, lab, options), read_history(course, lab), names_in(course)
    intake = Intake(choice.platform, refused=choice.refused, passed_over=choice.passed_over)
    for candidate in choice.candidates:
        student, path = candidate.student, candidate.entry.path
        try:
            done = accept(course, lab, candidate, source, history[student], names, force=force, dry_run=dry_run)
        except Refusal as error:
            intake.refused.append(RefusedFile(path, str(error)))
            continue
        intake.changed += done.outcome != UNCHANGED
        when = f"{done.when:{SECONDS}}" if done.when else ""
        late = " (late, says the platform)" if candidate.late else ""
        intake.rows.append((student, path, done.size_bytes, when, f"{done}{late}"))
    if options.roster:
        came = {candidate.student for candidate in choice.candidates}
        intake.missing = [student for student in options.roster.students if student not in came]
    return intake
