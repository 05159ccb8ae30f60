"""What students wrote, of a length that pages can show: what colours code and sets text takes the square of it.

A page shows the beginning of a longer cell and says where the rest is. What runs and is judged is the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from nbformat import NotebookNode

MOST_IN_A_CELL = 20_000
"""Characters: some 400 lines."""
MOST_IN_ALL = 200_000


def make_readable(cells: Sequence[NotebookNode]) -> None:
    """Cut what is too long to be shown in these cells, of which nobody but the student wrote the text."""
    left = MOST_IN_ALL
    for cell in cells:
        if cell.cell_type == "code":
            # Lines of blanks alone are what takes the longest.
            cell.source = "\n".join(line.rstrip() for line in cell.source.split("\n"))
        cell.source = _cut(cell.source, min(MOST_IN_A_CELL, left), "# " if cell.cell_type == "code" else "")
        left = max(left - len(cell.source), 0)


def _cut(source: str, room: int, lead: str) -> str:
    if len(source) <= room:
        return source
    rest = f"[{len(source) - room:,} more characters of this cell are in the notebook as it was handed in]"
    return f"{source[:room]}\n\n{lead}{rest}"
