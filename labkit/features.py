"""The course's feature table: a row a lab, what its technique does to speed and memory, as the student measured it.

It grows from lab to lab in one file beside the student's notebooks. It is shown, never graded, and nothing here raises
where an exercise is still blank, the file is damaged or the folder is read-only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from labkit.labs import LABS
from labkit.shell import show

FILE = "feature_table.json"
NOTHING = "–"
Told = str | Callable[[], str]
"""A text, or what makes it: asked for late, so that a blank exercise costs its own figure alone."""

_CELL = "padding:3px 14px 3px 0;border:none;text-align:left;vertical-align:top;background:transparent"


@dataclass(frozen=True)
class Feature:
    """A row: `Feature("Checkpoint, 8 segments", speed="1.33 x the FLOPs", memory="17 % of the peak")`."""

    technique: str
    speed: str
    memory: str


class FeatureTable:
    """The rows by lab, as a notebook shows them, and as text elsewhere."""

    def __init__(self, rows: Mapping[str, Feature]) -> None:
        self.rows = dict(sorted(rows.items()))

    def lines(self) -> list[tuple[str, str, str, str]]:
        head = ("lab", "technique", "speed", "memory")
        return [head, *((lab, row.technique, row.speed, row.memory) for lab, row in self.rows.items())]

    def __repr__(self) -> str:
        lines = self.lines()
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        return "\n".join("  ".join([*map(str.ljust, line, widths), line[3]]).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head, *lines = self.lines()
        rows = "".join(_row("td", line) for line in lines)
        style = "border-collapse:collapse;border:none;color:inherit;font-size:13px"
        return f'<table class="labkit-features" style="{style}">{_row("th", head)}{rows}</table>'


def feature_row(lab: str, technique: str, speed: Told = NOTHING, memory: Told = NOTHING) -> None:
    """Keep this lab's row in place of an earlier one and show the table so far: `feature_row("05", "Checkpoint", ...)`.

    speed and memory: texts with units, or functions that make them; where such a function raises, the row says that
    it is not measured yet.
    """
    path = table_path()
    rows = read_rows(path) | {lab: Feature(technique, _told(speed), _told(memory))}
    show(FeatureTable(rows))
    try:
        _write(path, rows)
    except OSError as error:
        print(f"(This row could not be kept: {error.strerror or error}.)")


def feature_table() -> None:
    """Show the rows of all labs so far."""
    show(FeatureTable(read_rows(table_path())))


def table_path() -> Path:
    """In `work/` of the course's folder for a notebook inside of it; elsewhere beside the notebook."""
    course, here = Path(__file__).resolve().parents[1], Path.cwd()
    return (course / "work" if here.is_relative_to(course) else here) / FILE


def read_rows(path: Path) -> dict[str, Feature]:
    """The rows that the file holds: none where it is missing or damaged, and only those that are whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = {lab: found[lab] for lab in (one.id for one in LABS) if lab in found}
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    names = ("technique", "speed", "memory")
    return {
        lab: Feature(*(row[name] for name in names))
        for lab, row in known.items()
        if isinstance(row, dict) and all(isinstance(row.get(name), str) for name in names)
    }


def _write(path: Path, rows: Mapping[str, Feature]) -> None:
    """The whole file or nothing, under a name of this process until it is whole."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        text = json.dumps({lab: vars(row) for lab, row in sorted(rows.items())}, indent=1, ensure_ascii=False)
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _told(text: Told) -> str:
    if isinstance(text, str):
        return text
    try:
        return str(text())
    except Exception:
        # Whatever an unfinished answer does: it is not this cell that tells of it.
        return "not measured yet"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    inside = "".join(f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells)
    return f'<tr style="background:transparent">{inside}</tr>'
