"""The way to a terminal: lines, tables, a progress bar. What a student wrote cannot move the cursor, change colours,
turn the direction of writing or pose as another line, whoever forgot where a text is from.

Nothing else of this package prints (tests/grading/test_terminal.py); what is shown is decided elsewhere.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

NO_READER = 141
"""The exit code that a shell gives a program which SIGPIPE ended."""


def say(*lines: object, is_error: bool = False) -> None:
    """Lines for the person at the terminal, each made harmless by `one_line`; never wrapped, coloured or interpreted.

    is_error: to stderr. Where nobody reads there any more (`... | head`), the program ends: SystemExit.
    """
    stream = sys.stderr if is_error else sys.stdout
    # A terminal that knows few characters gets a "?" for the others, and the run goes on.
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with _end_without_reader(stream):
        for line in lines:
            print(one_line(line).encode(encoding, "replace").decode(encoding), file=stream, flush=True)


def flush() -> None:
    """Send what argparse printed, and end as `say` does. At the interpreter's end it is too late to be quiet."""
    for stream in (sys.stdout, sys.stderr):
        with _end_without_reader(stream):
            stream.flush()


@contextmanager
def _end_without_reader(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # What could not be written is still in the stream, and Python tries once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # No Exception: `except` clauses around a command's work are not meant for it, and `finally` clauses are.
        raise SystemExit(NO_READER) from None


def progress_bar() -> Progress:
    """A progress bar with counts and remaining time; silent where there is no terminal."""
    # Imported late: every command comes by here, and few of them draw.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table; a column of numbers is aligned to the right."""
    texts = [[one_line(value) for value in row] for row in (header, *rows)]
    widths = [max(_columns(row[i]) for row in texts) for i in range(len(header))]
    right = [len(texts) > 1 and all(_is_number(row[i]) for row in texts[1:]) for i in range(len(header))]
    lines = []
    for row in texts:
        cells = (_padded(text, w, r) for text, w, r in zip(row, widths, right, strict=True))
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def lines_in(text: object) -> list[str]:
    """The lines of a text of several, each as `one_line` makes it."""
    return [one_line(line) for line in str(text).replace("\r\n", "\n").split("\n")]


def one_line(text: object) -> str:
    """The text on one line, with a "?" for what is not printed as itself; a blank of any width becomes one blank."""
    return "".join(map(_printed, str(text).replace("\t", "    ")))


def _printed(char: str) -> str:
    if char.isprintable():
        return char
    return " " if unicodedata.category(char) == "Zs" else "?"


def _padded(text: str, width: int, right: bool) -> str:
    gap = " " * (width - _columns(text))
    return gap + text if right else text + gap


def _columns(text: str) -> int:
    """How many columns of a terminal it takes: Chinese characters are two wide, combining ones none."""
    from rich.cells import cell_len

    return cell_len(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""
    return True
