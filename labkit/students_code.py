"""Tell a student's own code, from cells or files of theirs, from ours and the libraries', by the file of its frames."""

from __future__ import annotations

import linecache
import sysconfig
from pathlib import Path

import torch

_OURS = tuple(str(Path(__file__).resolve().parents[1] / name) for name in ("labkit", "grading"))
_LIBRARIES = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    # The grader's worker runs the interpreter itself, which does not know of the environment.
    str(Path(torch.__file__).resolve().parents[1]),
)


def is_students(filename: str) -> bool:
    """Whether a frame of this file is the student's: the file is neither ours nor a library's, or is a cell."""
    if filename.startswith((*_OURS, *_LIBRARIES)):
        return False
    return not filename.startswith("<") or bool(linecache.getline(filename, 1))


def line_of(filename: str, number: int) -> str:
    """ "line 3: total += x", as a student reads it; without the text where there is none."""
    text = linecache.getline(filename, number).strip()
    return f"line {number}: {text[:80]}" if text else f"line {number}"
