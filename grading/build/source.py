"""Reads a source `NN_slug.py` (jupytext percent format) into cells that know their lines in the file.

Which lines make a cell is jupytext's decision alone. Nothing is judged here but what makes a file unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jupytext

FILE_NAME = re.compile(r"(?P<lab>\d\d)_(?P<slug>[a-z0-9]+(_[a-z0-9]+)*)\.py")
HEADER = re.compile(r"\s*#\s*%%+(\s.*)?")
LINE_KEY = "source_line"


@dataclass(frozen=True)
class Problem:
    """One reason why a source is refused, and where."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class BadSource(Exception):
    """A source that is not built; `problems` holds every reason."""

    def __init__(self, problems: list[Problem]):
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True)
class Cell:
    """One cell as its author wrote it. `line` is its header's, `raw` the lines of the file below the header."""

    line: int
    kind: str
    source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    raw: tuple[str, ...] = ()

    @property
    def nbgrader(self) -> Mapping[str, Any]:
        found = self.metadata.get("nbgrader")
        return found if isinstance(found, Mapping) else {}

    @property
    def grade_id(self) -> str | None:
        found = self.nbgrader.get("grade_id")
        return found if isinstance(found, str) else None

    @property
    def is_solution(self) -> bool:
        return bool(self.nbgrader.get("solution"))

    @property
    def is_grade(self) -> bool:
        return bool(self.nbgrader.get("grade"))

    @property
    def is_task(self) -> bool:
        return bool(self.nbgrader.get("task"))

    @property
    def is_check(self) -> bool:
        """Graded by running it: it carries points and asks the student for nothing."""
        return self.is_grade and not self.is_solution and not self.is_task

    @cached_property
    def lines(self) -> list[str]:
        return self.source.split("\n")

    def line_of(self, offset: int) -> int:
        """The line in the file of the cell's line `offset` (from 0)."""
        # A text cell may open with quotes and any cell with blank lines, which are not part of its source.
        first = next((text.strip() for text in self.lines if text.strip()), "")
        blank_first = next((i for i, text in enumerate(self.lines) if text.strip()), 0)
        found = next((i for i, text in enumerate(self.raw) if first and first in text), blank_first)
        return self.line + 1 + found - blank_first + offset


@dataclass(frozen=True)
class Source:
    """One lab's source: its cells in order."""

    file: str
    name: str
    lab: str
    cells: tuple[Cell, ...]

    def problem(self, cell: Cell, reason: str, offset: int | None = None) -> Problem:
        """A problem of this cell, at its header or at one of its lines."""
        return Problem(self.file, cell.line if offset is None else cell.line_of(offset), reason)


def read(path: Path) -> Source:
    """The cells of a source. Raises BadSource where there is nothing to look at any further."""
    file = shown(path)
    match = FILE_NAME.fullmatch(path.name)
    if match is None:
        raise BadSource([Problem(file, 1, "the file must be called NN_slug.py, as in 02_float_formats.py")])
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSource([Problem(file, 1, f"cannot be read: {error}")]) from error
    try:
        cells = cells_of(text)
    except Exception as error:  # jupytext documents no error of its own for a broken file
        raise BadSource([Problem(file, 1, f"is not a notebook in jupytext's percent format: {error}")]) from error
    if cells and cells[0].line == 0:
        reason = "text before the first cell; every cell starts with a line # %%"
        raise BadSource([Problem(file, cells[0].line_of(0), reason)])
    return Source(file, path.stem, match["lab"], tuple(cells))


def cells_of(text: str) -> list[Cell]:
    """The cells of a text in percent format, each with the line of its header, 0 for text before the first one."""
    # jupytext keeps no positions. So each candidate carries its number through jupytext as metadata: the ones that come
    # back are the headers.
    lines = text.split("\n")
    marked = [
        f"{line.rstrip()} {LINE_KEY}={number}" if HEADER.fullmatch(line) else line
        for number, line in enumerate(lines, 1)
    ]
    found = jupytext.reads("\n".join(marked), fmt="py:percent").cells
    starts = [int(cell.metadata.pop(LINE_KEY, 0)) for cell in found]
    if any(LINE_KEY in cell.source for cell in found):
        # What only looks like a header, a line inside a string, is none, and belongs into its cell as it stands.
        found = jupytext.reads(text, fmt="py:percent").cells
    ends = [start - 1 for start in starts[1:]] + [len(lines)]
    return [
        Cell(start, cell.cell_type, cell.source.strip("\n"), dict(cell.metadata), tuple(lines[start:end]))
        for cell, start, end in zip(found, starts, ends)
    ]


def shown(path: Path) -> str:
    """The path as it is shown: from the current folder where it lies below it."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
