"""From the course source to notebooks: reads `solutions/`, refuses what is wrong in it, writes `notebooks/`.

Nothing here runs a notebook, talks to nbgrader's database, or knows of any submission. A name is found when it is first
asked for: grading needs the student's version of a notebook alone.
"""

from labkit.lazy import on_first_use

_HOMES = {
    "CODE_STUB": "grading.build.stub",
    "TEXT_STUB": "grading.build.stub",
    "BadSource": "grading.build.source",
    "Built": "grading.build.compile",
    "Problem": "grading.build.source",
    "build": "grading.build.compile",
    "build_solution": "grading.build.notebook",
    "nbgrader_config": "grading.build.stub",
    "problems": "grading.build.lint",
    "student_version": "grading.build.student",
}
"""The public names, and the module of each."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    return on_first_use(__name__, _HOMES, name)
