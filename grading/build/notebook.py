"""The solved notebook of a source: what an instructor runs, and what nbgrader releases from.

It is a function of the source and the declarations alone: no clock, no random ids, no traces of jupytext.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from grading.build.directives import expand
from grading.build.source import Cell, Source, read
from labkit.exercises import of_lab
from labkit.labs import Lab, find_lab
from labkit.spec import Exercise

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# The rest of a header (titles, jupytext's notes to itself) concerns the source only.
KEPT_METADATA = ("nbgrader", "tags", "jupyter", "slideshow")
NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


def build_solution(path: Path, exercises: Mapping[str, Exercise] | None = None) -> nbformat.NotebookNode:
    """The notebook of a source, solutions kept. `exercises` are the lab's own unless given."""
    source = read(Path(path))
    return notebook_of(source, of_lab(source.lab) if exercises is None else exercises)


def notebook_of(source: Source, exercises: Mapping[str, Exercise], lab: Lab | None = None) -> nbformat.NotebookNode:
    """The notebook of a source that has been read; `lab` is the declared one unless given."""
    lab, done, cells = lab or find_lab(source.lab), set(), []
    for position, cell in enumerate(source.cells, 1):
        text = expand(cell.source, exercises, lab, done) if cell.kind == "markdown" else cell.source
        cells.append(node(cell, cell_id(cell, source.lab, position), text))
        done |= {cell.grade_id.removesuffix("-check")} if cell.is_check and cell.grade_id else set()
    notebook = new_notebook(cells=cells, metadata=copy.deepcopy(METADATA))
    notebook.nbformat_minor = 5
    return notebook


def node(cell: Cell, identity: str, text: str) -> nbformat.NotebookNode:
    """The notebook's cell of a source's cell, with its directives replaced in `text`."""
    kept = {key: copy.deepcopy(cell.metadata[key]) for key in KEPT_METADATA if key in cell.metadata}
    return NEW_CELL[cell.kind](text, id=identity, metadata=nbformat.from_dict(kept))


def cell_id(cell: Cell, lab: str, position: int) -> str:
    """nbgrader's id where there is one, so that a cell is found again; else the lab and the position (from 1)."""
    return cell.grade_id or f"{lab}-c{position:03d}"


def to_json(notebook: nbformat.NotebookNode) -> str:
    """The bytes of the file: the same for equal notebooks. Raises nbformat's ValidationError for no notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"
