"""Read a submitted notebook as text, whatever state it is in.

Of its JSON only the cells' types, ids and sources are taken. Metadata beyond the ids, outputs and the kernel are never
looked at, and nothing of the file is shown in a message.
"""

from __future__ import annotations

import hashlib
import json
import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from grading.files import Unreadable, read_plain_file

MAX_BYTES = 50 * 2**20
MAX_VALUES = 2**20
"""Of JSON: texts, lists, objects, and whatever a comma divides. A notebook with its outputs has some thousands."""
MAX_CELLS = 1_000
MAX_CHARACTERS = 2**20
MAX_ID = 256
"""Characters of a cell's id; ours have a tenth of that, and nbgrader's are as long as a person types."""

VERSIONS = (2, 3, 4)
"""Of the notebook format; the earlier ones have their cells in worksheets."""

_VALUE = re.compile(rb'[^"\[{,]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{,]|\Z)', re.DOTALL)
"""Up to the next value and with it, as they are counted here. It matches at every place, so it never looks back."""


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


class _NotWhole(Exception):
    """What is wrong with the notebook, to be said after its name."""


def read_submission(path: Path) -> Submission:
    """Read a notebook of any version. Raises Unreadable with the reason, or OSError where this machine is at fault."""
    return parse_submission(read_plain_file(path, MAX_BYTES), path.name)


def parse_submission(data: bytes, name: str) -> Submission:
    """The notebook in the bytes of a file called `name`. Raises Unreadable with the reason."""
    if not data.strip():
        raise Unreadable(f"{name} is empty: ask for a new copy")
    if data.startswith(BOM_UTF8):
        raise Unreadable(
            f"{name} begins with a byte order mark, with which Jupyter cannot open it: ask for the original"
        )
    try:
        text = data.decode()
        _refuse_many_values(name, data)
        cells = tuple(_cell(n, cell) for n, cell in enumerate(_cells(json.loads(text)), start=1))
    except UnicodeDecodeError as error:
        raise Unreadable(f"{name} is not a text file: ask for the notebook itself") from error
    except json.JSONDecodeError as error:
        text = f"{name} is not a complete notebook: it breaks off or is damaged at line {error.lineno}"
        raise Unreadable(f"{text}. Ask for a new copy") from error
    except (_NotWhole, RecursionError, ValueError) as error:
        # ValueError: a number of thousands of digits.
        reason = error if isinstance(error, _NotWhole) else f"its JSON cannot be read, {type(error).__name__}"
        raise Unreadable(f"{name} is not a complete notebook ({reason}): ask for a new copy") from error
    _refuse_too_much(name, cells)
    return Submission(cells, digest_of(data))


def digest_of(data: bytes) -> str:
    """What tells this file of a submission from every other: the SHA-256 of its bytes."""
    return hashlib.sha256(data).hexdigest()


def _refuse_many_values(name: str, data: bytes) -> None:
    """Python takes up to a hundred times the bytes of JSON for its values, so they are counted before they are made."""
    # Never too few, for what stands in texts is counted too; most files are done with this.
    if data.count(b'"') // 2 + sum(map(data.count, (b",", b"[", b"{"))) <= MAX_VALUES:
        return
    if sum(1 for _ in islice(_VALUE.finditer(data), MAX_VALUES + 1)) > MAX_VALUES:
        raise Unreadable(f"{name} has more than {MAX_VALUES:,} JSON values: clear its outputs and resubmit")


def _cells(notebook: Any) -> list:
    version = notebook.get("nbformat") if isinstance(notebook, dict) else None
    # True is no version, though to Python it is a number.
    if type(version) is not int or version not in VERSIONS:
        raise _NotWhole(f"it does not say that its format is of version {VERSIONS[0]} to {VERSIONS[-1]}")
    if version == VERSIONS[-1]:
        return _list_in(notebook, "cells")
    return [cell for sheet in _list_in(notebook, "worksheets") for cell in _list_in(sheet, "cells")]


def _list_in(parent: Any, key: str) -> list:
    found = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(found, list):
        raise _NotWhole(f"it has no list of {key}")
    return found


def _cell(n: int, cell: Any) -> SubmittedCell:
    if not isinstance(cell, dict):
        raise _NotWhole(f"its cell {n} is none")
    # A notebook that went through a tool which drops metadata still has its cell ids, which are the same names.
    found = (_grade_id(cell.get("metadata")), cell.get("id"))
    cell_id = next((value for value in found if isinstance(value, str) and 0 < len(value) <= MAX_ID), "")
    cell_type = cell.get("cell_type")
    if cell_type not in ("code", "markdown", "raw"):
        # Of earlier versions, and of nobody's.
        cell_type = "markdown" if cell_type in ("heading", "html") else "raw"
    # Code cells of earlier versions.
    source = cell["source"] if "source" in cell else cell.get("input", "")
    return SubmittedCell(_clean(cell_id), cell_type, _clean(_text(n, source)))


def _grade_id(metadata: Any) -> Any:
    meta = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return meta.get("grade_id") if isinstance(meta, dict) else None


def _text(n: int, source: Any) -> str:
    """A cell's source: one text, or a list of its lines."""
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise _NotWhole(f"the source of its cell {n} is no text")
    return "".join(lines)


def _refuse_too_much(name: str, cells: tuple[SubmittedCell, ...]) -> None:
    n_characters = sum(len(cell.source) for cell in cells)
    if len(cells) > MAX_CELLS or n_characters > MAX_CHARACTERS:
        found = f"{len(cells):,} cells with {n_characters:,} characters"
        raise Unreadable(f"{name} has {found}, more than {MAX_CELLS:,} and {MAX_CHARACTERS:,}: ask what happened")


def _clean(text: str) -> str:
    """Without the halves of characters that JSON can hold and no file can."""
    return text.encode("utf-8", "replace").decode()
