"""The files that the grades of a class can be exported to, by the name of their format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grading.course import Course
from grading.report.canvas import as_canvas, read_roster
from grading.report.csv_table import as_csv
from grading.report.exported import Exported
from grading.report.gradescope import as_gradescope
from grading.report.moodle import as_moodle
from grading.report.nbgrader_table import as_nbgrader
from grading.report.people import read_people
from grading.report.record import ClassRecord


@dataclass(frozen=True)
class ExportOptions:
    """roster: for canvas, a gradebook that it exported. id_field and comments: for moodle."""

    roster: Path | None = None
    id_field: str = "idnumber"
    comments: bool = False


def _csv(course: Course, record: ClassRecord, options: ExportOptions) -> Exported:
    return Exported(as_csv(record))


def _canvas(course: Course, record: ClassRecord, options: ExportOptions) -> Exported:
    return as_canvas(record, read_people(course), read_roster(options.roster) if options.roster else None)


def _moodle(course: Course, record: ClassRecord, options: ExportOptions) -> Exported:
    return as_moodle(record, read_people(course), options.id_field, options.comments)


def _gradescope(course: Course, record: ClassRecord, options: ExportOptions) -> Exported:
    return as_gradescope(record, read_people(course))


def _nbgrader(course: Course, record: ClassRecord, options: ExportOptions) -> Exported:
    return as_nbgrader(course, record)


FORMATS: dict[str, Callable[[Course, ClassRecord, ExportOptions], Exported]] = {
    "csv": _csv,
    "canvas": _canvas,
    "moodle": _moodle,
    "gradescope": _gradescope,
    "nbgrader": _nbgrader,
}
"""From the record of a class to the file's text."""
