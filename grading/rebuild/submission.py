"""Read a submitted notebook as text, whatever state it is in.

Metadata beyond the cells' ids, outputs and the kernel are never looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import nbformat

MAX_BYTES = 50 * 2**20
MAX_CELLS = 1_000
MAX_CHARACTERS = 2**20


class Unreadable(Exception):
    """The file is no notebook; the message says why and what to ask the student for."""


@dataclass(frozen=True)
class SubmittedCell:
    """id is the nbgrader id where the cell has one, else the notebook's own cell id."""

    id: str
    cell_type: str
    source: str


@dataclass(frozen=True)
class Submission:
    """The cells of a submitted notebook in order, and the digest of its bytes."""

    cells: tuple[SubmittedCell, ...]
    digest: str


def read_submission(path: Path) -> Submission:
    """Read a notebook of any version. Raises Unreadable with the reason."""
    data = _read_file(path)
    try:
        text = data.decode()
        json.loads(text)
        notebook = nbformat.reads(text, as_version=4)
        cells = tuple(_cell(cell) for cell in notebook.cells)
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path.name} is not a text file: ask for the notebook itself") from error
    except json.JSONDecodeError as error:
        text = f"{path.name} is not a whole notebook: it breaks off or is damaged at line {error.lineno}"
        raise Unreadable(f"{text}. Ask for a new copy") from error
    except Exception as error:
        # nbformat raises whatever the broken JSON happens to trip over.
        reason = str(error).strip().split("\n")[0][:120]
        text = f"{path.name} is not a whole notebook ({type(error).__name__}: {reason}): ask for a new copy"
        raise Unreadable(text) from error
    _refuse_too_much(path, cells)
    return Submission(cells, hashlib.sha256(data).hexdigest())


def _read_file(path: Path) -> bytes:
    """A plain file's bytes. Not through a link: it could lead to the solution, or to a classmate's answers."""
    if any(part.is_symlink() for part in (path, *list(path.parents)[:2])):
        raise Unreadable(f"{path.name} is a link or lies behind one: ask for the file itself")
    try:
        # Not blocking, because a named pipe would keep us waiting for somebody to write into it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(f"{path.name} is no ordinary file: ask for the notebook itself")
            if status.st_size > MAX_BYTES:
                text = f"{path.name} has {status.st_size:,} bytes, more than {MAX_BYTES:,}"
                raise Unreadable(f"{text}: clear its outputs and resubmit")
            return file.read(MAX_BYTES)
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from error


def _refuse_too_much(path: Path, cells: tuple[SubmittedCell, ...]) -> None:
    n_characters = sum(len(cell.source) for cell in cells)
    if len(cells) > MAX_CELLS or n_characters > MAX_CHARACTERS:
        found = f"{len(cells):,} cells with {n_characters:,} characters"
        raise Unreadable(f"{path.name} has {found}, more than {MAX_CELLS:,} and {MAX_CHARACTERS:,}: ask what happened")


def _cell(cell: nbformat.NotebookNode) -> SubmittedCell:
    metadata = cell.get("metadata", {})
    meta = metadata.get("nbgrader", {}) if isinstance(metadata, dict) else {}
    grade_id = meta.get("grade_id") if isinstance(meta, dict) else None
    # A notebook that went through a tool which drops metadata still has its cell ids, which are the same names.
    cell_id = grade_id if isinstance(grade_id, str) and grade_id else cell.get("id", "")
    return SubmittedCell(_clean(cell_id), str(cell.get("cell_type", "raw")), _clean(cell.get("source", "")))


def _clean(text: object) -> str:
    """Without the halves of characters that JSON can hold and no file can."""
    return str(text).encode("utf-8", "replace").decode()
