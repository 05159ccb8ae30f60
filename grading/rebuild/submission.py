"""Read a submitted notebook as text, whatever state it is in.

Metadata beyond the cells' ids, outputs and the kernel are never looked at.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import nbformat

from grading.files import Unreadable, read_plain_file

MAX_BYTES = 50 * 2**20
MAX_CELLS = 1_000
MAX_CHARACTERS = 2**20


@dataclass(frozen=True)
class SubmittedCell:
    """id is the nbgrader id where the cell has one, else the notebook's own cell id.

    SubmittedCell("02-decode", "code", "def decode(bits, format):\\n    ...")
    """

    id: str
    cell_type: str
    source: str


@dataclass(frozen=True)
class Submission:
    """The cells of a submitted notebook in order, and the SHA-256 of its bytes.

    Submission(cells=(SubmittedCell("02-decode", "code", "def decode…"), …), digest="9c1e…")
    """

    cells: tuple[SubmittedCell, ...]
    digest: str


def read_submission(path: Path) -> Submission:
    """Read a notebook of any version. Raises Unreadable with the reason, or OSError where this machine is at fault."""
    return parse_submission(read_plain_file(path, MAX_BYTES), path.name)


def parse_submission(data: bytes, name: str) -> Submission:
    """The notebook in the bytes of a file called `name`. Raises Unreadable with the reason."""
    try:
        text = data.decode()
        json.loads(text)
        notebook = nbformat.reads(text, as_version=4)
        cells = tuple(_cell(cell) for cell in notebook.cells)
    except UnicodeDecodeError as error:
        raise Unreadable(f"{name} is not a text file: ask for the notebook itself") from error
    except json.JSONDecodeError as error:
        text = f"{name} is not a whole notebook: it breaks off or is damaged at line {error.lineno}"
        raise Unreadable(f"{text}. Ask for a new copy") from error
    except Exception as error:
        # nbformat raises whatever the broken JSON happens to trip over.
        reason = str(error).strip().split("\n")[0][:120]
        text = f"{name} is not a whole notebook ({type(error).__name__}: {reason}): ask for a new copy"
        raise Unreadable(text) from error
    _refuse_too_much(name, cells)
    return Submission(cells, hashlib.sha256(data).hexdigest())


def _refuse_too_much(name: str, cells: tuple[SubmittedCell, ...]) -> None:
    n_characters = sum(len(cell.source) for cell in cells)
    if len(cells) > MAX_CELLS or n_characters > MAX_CHARACTERS:
        found = f"{len(cells):,} cells with {n_characters:,} characters"
        raise Unreadable(f"{name} has {found}, more than {MAX_CELLS:,} and {MAX_CHARACTERS:,}: ask what happened")


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
