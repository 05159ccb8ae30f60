"""The course's feature table: one row per lab, what its technique does to speed and memory, as the student measured it.

It grows from lab to lab in one file beside the student's notebooks. It is shown, never graded. A row holds nothing but
what the notebook measured: where an answer is still blank there is no row, and nothing here raises at a student, also
where the file is damaged or the folder is read-only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from labkit.blanks import blank_met_by
from labkit.labs import every_lab
from labkit.shell import show

FILE = "feature_table.json"
NOT_MEASURED = "–"
HEAD = ("lab", "technique", "speed", "memory")
Measure = Callable[[], str]
"""Makes a text with its unit from the student's measurements: called late, so that a blank answer is met here."""

_CELL = "padding:3px 14px 3px 0;border:none;text-align:left;vertical-align:top;background:transparent"


@dataclass(frozen=True)
class Feature:
    """A row: `Feature("checkpoint in segments", speed="1.33 x the FLOPs", memory="17 % of the peak")`."""

    technique: str
    speed: str
    memory: str


class FeatureTable:
    """The rows by lab, and which of the course's labs have none: as a notebook shows them, and as text elsewhere."""

    def __init__(self, rows: Mapping[str, Feature]) -> None:
        self.rows = dict(sorted(rows.items()))

    def lines(self) -> list[tuple[str, str, str, str]]:
        return [(lab, row.technique, row.speed, row.memory) for lab, row in self.rows.items()]

    def missing(self) -> str:
        """Which labs have no row, as a sentence; empty where all have one."""
        labs = [lab.id for lab in every_lab() if lab.stands and lab.id not in self.rows]
        return f"No row yet from lab {', '.join(labs)}: the last cell of each lab adds it." if labs else ""

    def __repr__(self) -> str:
        lines = [HEAD, *self.lines()]
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        texts = ["  ".join([*map(str.ljust, line, widths), line[3]]).rstrip() for line in lines]
        return "\n".join([*texts, self.missing()]).rstrip()

    def _repr_html_(self) -> str:
        rows = _row("th", HEAD) + "".join(_row("td", line) for line in self.lines())
        style = "border-collapse:collapse;border:none;color:inherit;font-size:13px"
        return f'<table class="labkit-features" style="{style}">{rows}</table><p>{escape(self.missing())}</p>'


def feature_row(lab: str, technique: str, speed: Measure | None = None, memory: Measure | None = None) -> None:
    """Keep this lab's row in place of an earlier one and show the table so far.

    speed, memory: make the texts, from what the notebook measured; None where the lab does not measure it. If one of
    them raises, no row is made, an earlier one stays, and a line says why.

        feature_row("05", "checkpoint in segments", memory=lambda: f"{segmented / regular:.0%} of the peak")
    """
    path = table_path()
    rows = read_rows(path)
    try:
        row = Feature(technique, *(NOT_MEASURED if part is None else str(part()) for part in (speed, memory)))
    except Exception as error:
        # Whatever an unfinished answer does: it is not this cell that tells of it.
        blank = blank_met_by(error)
        reason = f"{blank} is still blank" if blank else f"{type(error).__name__}: {error}"
        print(f"Lab {lab} has no new row: {reason}. Run the cells above, then this one.")
    else:
        rows[lab] = row
        _keep(path, rows)
    show(FeatureTable(rows))


def feature_table() -> None:
    """Show the rows of all labs so far, and name the labs without one."""
    show(FeatureTable(read_rows(table_path())))


def table_path() -> Path:
    """In `work/` of the course's folder for a notebook inside of it; elsewhere beside the notebook."""
    course, here = Path(__file__).resolve().parents[1], Path.cwd()
    return (course / "work" if here.is_relative_to(course) else here) / FILE


def read_rows(path: Path) -> dict[str, Feature]:
    """The rows that the file holds: none where it is missing or damaged, and only those that are whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = {lab: found[lab] for lab in (one.id for one in every_lab()) if lab in found}
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    names = ("technique", "speed", "memory")
    return {
        lab: Feature(*(row[name] for name in names))
        for lab, row in known.items()
        if isinstance(row, dict) and all(isinstance(row.get(name), str) for name in names)
    }


def _keep(path: Path, rows: Mapping[str, Feature]) -> None:
    """Write the whole file or nothing, under a name of this process until it is whole; say so where that fails."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = json.dumps({lab: vars(row) for lab, row in sorted(rows.items())}, indent=1, ensure_ascii=False)
    try:
        path.parent.mkdir(exist_ok=True)
        try:
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        print(f"(This row could not be kept: {error.strerror or error}.)")


def _row(tag: str, cells: tuple[str, ...]) -> str:
    inside = "".join(f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells)
    return f'<tr style="background:transparent">{inside}</tr>'
