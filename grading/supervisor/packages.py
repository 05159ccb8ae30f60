"""The packages that a result depends on: which versions of them there are, and what a lab imports that is not there."""

from __future__ import annotations

import ast
import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder

from grading.isolation.plan import library_paths

PACKAGES = ("torch", "numpy", "triton", "transformers", "peft", "ipython", "nbformat")
"""What the labs compute with, the shell that their cells run in, and what reads a submitted notebook."""
ABSENT = "absent"


def versions() -> dict[str, str]:
    """The versions of Python and of PACKAGES by name; ABSENT for a package that is not installed."""
    return {"Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ABSENT


def absent_imports(cells: Sequence[str]) -> list[str]:
    """The packages that these cells import whatever happens, and that a worker on this machine would not find.

    An import within `try`, `if` or a function has another way out; a module that a cell writes is no package.
    """
    top_level = {name.partition(".")[0] for cell in cells for name in _imports(cell)}
    ours = {"labkit", *sys.stdlib_module_names}
    missing = [name for name in top_level - ours if PathFinder.find_spec(name, library_paths()) is None]
    return sorted(name for name in missing if not any(f"{name}.py" in cell for cell in cells))


def _imports(cell: str) -> list[str]:
    # Imported late: who asks for versions alone, as each process that judges does, runs no cell.
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        body = ast.parse(TransformerManager().transform_cell(cell)).body
    except (SyntaxError, ValueError):
        return []
    names = [item.name for node in body if isinstance(node, ast.Import) for item in node.names]
    return names + [node.module for node in body if isinstance(node, ast.ImportFrom) and node.module and not node.level]
