"""Which points a graded notebook gives, as nbgrader reads them: cell by cell, and which answers were left blank.

Nothing is written here.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbformat import NotebookNode
from nbgrader import utils


@dataclass(frozen=True)
class Scores:
    """By cell id: points, None where a person has to give them; and nbgrader's own remark on each answer cell.

    Scores(points={"02-decode-check": 2.0, "02-open": None}, comments={"02-decode": None, "02-open": "No response."})
    """

    points: dict[str, float | None]
    comments: dict[str, str | None]


def scores_of(notebook: NotebookNode) -> Scores:
    """What nbgrader's SaveAutoGrades would save of this notebook."""
    points, comments = {}, {}
    for cell in notebook.cells:
        if utils.is_grade(cell):
            points[_id(cell)], _ = utils.determine_grade(cell)
        if utils.is_solution(cell) or utils.is_task(cell):
            is_blank = cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
            comments[_id(cell)] = "No response." if is_blank and not utils.is_task(cell) else None
    return Scores(points, comments)


def _id(cell: NotebookNode) -> str:
    return cell.metadata.nbgrader["grade_id"]
