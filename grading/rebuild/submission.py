"""Read a submitted notebook as text, whatever state it is in.

Metadata beyond the cells' ids, outputs and the kernel are never looked at.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import nbformat

MAX_BYTES = 50 * 2**20


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
    try:
        size_bytes = path.stat().st_size
        if size_bytes > MAX_BYTES:
            raise Unreadable(
                f"{path.name} has {size_bytes:,} bytes, more than {MAX_BYTES:,}: clear its outputs and resubmit"
            )
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from error
    try:
        notebook = nbformat.reads(data.decode(), as_version=4)
        cells = tuple(_cell(cell) for cell in notebook.cells)
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path.name} is not a text file: ask for the notebook itself") from error
    except Exception as error:
        # nbformat raises whatever the broken JSON happens to trip over.
        reason = str(error).strip().split("\n")[0][:120]
        text = f"{path.name} is not a whole notebook ({type(error).__name__}: {reason}): ask for a new copy"
        raise Unreadable(text) from error
    return Submission(cells, hashlib.sha256(data).hexdigest())


def _cell(cell: nbformat.NotebookNode) -> SubmittedCell:
    metadata = cell.get("metadata", {})
    meta = metadata.get("nbgrader", {}) if isinstance(metadata, dict) else {}
    grade_id = meta.get("grade_id") if isinstance(meta, dict) else None
    # A notebook that went through a tool which drops metadata still has its cell ids, which are the same names.
    cell_id = grade_id if isinstance(grade_id, str) and grade_id else cell.get("id", "")
    return SubmittedCell(str(cell_id), str(cell.get("cell_type", "raw")), str(cell.get("source", "")))
