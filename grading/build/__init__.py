"""From the course source to notebooks: reads `solutions/`, refuses what is wrong in it, writes `notebooks/`.

Nothing here runs a notebook, talks to nbgrader's database, or knows of any submission. A name is found when it is first
asked for: grading needs the student's version of a notebook alone.
"""

import importlib

_HOMES = {
    "CODE_STUB": "stub",
    "TEXT_STUB": "stub",
    "BadSource": "source",
    "Built": "compile",
    "Problem": "source",
    "build": "compile",
    "build_solution": "notebook",
    "nbgrader_config": "stub",
    "problems": "lint",
    "student_version": "student",
}
"""The public names, and the module of each."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
