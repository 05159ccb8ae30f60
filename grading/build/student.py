"""The student's notebook of a solved one, made by nbgrader's own preprocessors in nbgrader's own order.

It equals what `nbgrader generate_assignment` releases (a test compares the bytes), without a course or a
database. Three of nbgrader's steps are left out: SaveCells needs the database, IncludeHeaderFooter and
InstantiateTests have nothing to do in these notebooks.
"""

from __future__ import annotations

import copy

from nbformat import NotebookNode
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ComputeChecksums,
    LockCells,
)

from grading.build.stub import ClearSolutions, nbgrader_config

STEPS = (
    LockCells,
    ClearSolutions,
    ClearOutput,
    CheckCellMetadata,
    ComputeChecksums,
    ClearHiddenTests,
    ClearMarkScheme,
    ComputeChecksums,
    CheckCellMetadata,
)


def student_version(notebook: NotebookNode) -> NotebookNode:
    """What students get; the given notebook is left as it is. Raises nbgrader's errors for a bad notebook."""
    config = nbgrader_config()
    notebook, resources = copy.deepcopy(notebook), {}
    for step in STEPS:
        notebook, resources = step(config=config).preprocess(notebook, resources)
    return notebook


def student_cell(cell: NotebookNode) -> NotebookNode:
    """One code cell as students get it: its solution replaced by the stub."""
    clear = ClearSolutions(config=nbgrader_config())
    cleared, _ = clear.preprocess_cell(copy.deepcopy(cell), {"language": "python"}, 0)
    return cleared
