"""Which points a graded notebook gives, as nbgrader reads them: cell by cell, and which answers were left blank.

Extra credit is read as `write_results` notes it; nbgrader itself reads none.

Nothing is written here.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbformat import NotebookNode
from nbgrader import utils

EXTRA = "extra_credit"
"""The name of an optional exercise's points in its cell's metadata."""


@dataclass(frozen=True)
class Scores:
    """By cell id: points, None where a person has to give them; extra credit of the optional exercises; and nbgrader's
    own remark on each answer cell.

    Scores(points={"02-decode-check": 2.0, "02-merge-smallest-check": 0.0, "02-open": None},
           extra={"02-merge-smallest-check": 0.9}, comments={"02-decode": None, "02-open": "No response."})
    """

    points: dict[str, float | None]
    extra: dict[str, float]
    comments: dict[str, str | None]


def scores_of(notebook: NotebookNode) -> Scores:
    """What nbgrader's SaveAutoGrades would save of this notebook, and what SaveExtraCredit."""
    points, extra, comments = {}, {}, {}
    for cell in notebook.cells:
        if utils.is_grade(cell):
            points[_id(cell)], _ = utils.determine_grade(cell)
            extra |= {_id(cell): cell.metadata[EXTRA]} if EXTRA in cell.metadata else {}
        if utils.is_solution(cell) or utils.is_task(cell):
            is_blank = cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
            comments[_id(cell)] = "No response." if is_blank and not utils.is_task(cell) else None
    return Scores(points, extra, comments)


def _id(cell: NotebookNode) -> str:
    return cell.metadata.nbgrader["grade_id"]
