"""Text for a terminal: lines, tables, a progress bar; what a student wrote cannot move the cursor, change colours or
pose as another line.

What is shown is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def say(text: str) -> None:
    """A line for the person at the terminal; never wrapped, coloured or interpreted."""
    print(text, flush=True)


def progress_bar() -> Progress:
    """A progress bar with counts and remaining time; silent where there is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as aligned text; a column of numbers is aligned to the right."""
    texts = [[_cell(value) for value in row] for row in (header, *rows)]
    widths = [max(cell_len(row[i]) for row in texts) for i in range(len(header))]
    right = [len(texts) > 1 and all(_is_number(row[i]) for row in texts[1:]) for i in range(len(header))]
    lines = []
    for row in texts:
        cells = (_padded(text, w, r) for text, w, r in zip(row, widths, right, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def printable(text: object) -> str:
    """The text with every control and formatting character but the newline replaced by "?"; tabs become blanks."""
    return "\n".join(one_line(line) for line in str(text).replace("\r\n", "\n").split("\n"))


def one_line(text: object) -> str:
    """The text on one line, with a "?" for every character that is not printed as itself."""
    return "".join(char if char.isprintable() else "?" for char in str(text).replace("\t", "    "))


def _cell(value: object) -> str:
    """On one line, whatever a student's folder is called."""
    return "".join(char if char.isprintable() else "?" for char in str(value))


def _padded(text: str, width: int, right: bool) -> str:
    # Chinese characters are two columns wide, combining ones none.
    gap = " " * (width - cell_len(text))
    return gap + text if right else text + gap


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""
    return True
