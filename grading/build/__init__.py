"""From the course source to notebooks: reads `solutions/`, refuses what is wrong in it, writes `notebooks/`.

Nothing here runs a notebook, talks to nbgrader's database, or knows of any submission.
"""

from grading.build.compile import Built, build
from grading.build.lint import problems
from grading.build.notebook import build_solution
from grading.build.source import BadSource, Problem
from grading.build.stub import CODE_STUB, TEXT_STUB, nbgrader_config
from grading.build.student import student_version

__all__ = [
    "CODE_STUB",
    "TEXT_STUB",
    "BadSource",
    "Built",
    "Problem",
    "build",
    "build_solution",
    "nbgrader_config",
    "problems",
    "student_version",
]
