"""A small course with a graded class, as nbgrader and the grader leave it: a lab with a plain and a manual cell.

Made once for the tests, which read it and must leave it as it is.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from copy import deepcopy
from datetime import datetime
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from grading.course import Course
from grading.gradebook.feedback import make_feedback
from grading.gradebook.setup import CONFIG_TEXT, release
from grading.results import read_result
from grading.submissions import prepare
from labkit import exercises
from tests.grading.lessons import grade

LAB, TEST, OPEN = "00_warm_up", "00-plain", "00-open"
SOLUTION = "def rms(x, dim):\n    return x.float().square().mean(dim).sqrt().to(x.dtype)\n"
WHOLE_TENSOR = "def rms(x, dim):\n    return x.float().square().mean().sqrt().to(x.dtype)\n"
SCRIPT_RAISED = 'def rms(x, dim):\n    raise ValueError("<script>alert(1)</script>")\n'
PUBLIC_SHAPES = [case.shape for case in exercises.find("00-warm-up").public]
KNOWS_THE_PUBLIC_CASES = f"""def rms(x, dim):
    out = x.float().square().mean(dim).sqrt().to(x.dtype)
    public = {[*PUBLIC_SHAPES, (3,)]}
    return out if tuple(x.shape) in public else x.float().square().mean().sqrt().to(x.dtype)
"""
FORMULA, COMMA, SCRIPT = "=SUM(A1)", "O'Brien, Pat", "<script>x"


def graded_course(root: Path) -> Course:
    """Eight students: all graded but one whose file broke off and one who came after the grading."""
    course = empty_course(root)
    hand_in(course, "ada", SOLUTION, essay="A float has a sign.", timestamp="2026-03-01 10:00:00 UTC")
    hand_in(course, FORMULA, None)
    hand_in(course, COMMA, WHOLE_TENSOR, twice=True)
    hand_in(course, SCRIPT, SCRIPT_RAISED)
    hand_in(course, "hidden", KNOWS_THE_PUBLIC_CASES)
    hand_in(course, "late", SOLUTION, essay="Late, sorry.", timestamp="2026-03-05 10:00:00 UTC")
    hand_in(course, "torn", SOLUTION)
    path = course.submitted(LAB, "torn")
    path.write_text(path.read_text()[:300])
    grade(course, LAB, course.students(LAB), workers=1, isolation="none")
    _grade_by_hand(course, "late", 1.5)
    make_feedback(course, LAB)
    hand_in(course, "afterwards", SOLUTION)
    return course


def empty_course(root: Path) -> Course:
    """Released, and nobody handed in: made once, and copied."""
    shutil.copytree(_pristine(), root)
    return Course.at(root)


def stored(course: Course, student: str):
    """The stored result of a student's submission."""
    return read_result(prepare(course, LAB, LAB, student).result_path)


def hand_in(
    course: Course,
    student: str,
    answer: str | None,
    essay: str | None = None,
    timestamp: str | None = None,
    twice: bool = False,
) -> None:
    notebook = nbformat.read(course.root / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in notebook.cells}
    if answer is not None:
        cells["00-warm-up"].source = answer
    if essay is not None:
        cells[OPEN].source = essay
    if twice:
        copy = deepcopy(cells["00-warm-up"])
        copy.id = "pasted"
        notebook.cells.insert(3, copy)
    path = course.submitted(LAB, student)
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    if timestamp:
        (path.parent / "timestamp.txt").write_text(timestamp)


@functools.cache
def _pristine() -> Path:
    home = Path(tempfile.mkdtemp(prefix="pristine-course-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    root = home / "course"
    root.mkdir()
    config = CONFIG_TEXT.format(course_id="numerics") + '\nc.LateSubmissionPlugin.penalty_method = "zero"\n'
    (root / "nbgrader_config.py").write_text(config)
    (root / "source" / LAB).mkdir(parents=True)
    nbformat.write(_source(), root / "source" / LAB / f"{LAB}.ipynb")
    course = Course.at(root)
    course.make_key()
    release(course, [LAB])
    with _gradebook(course) as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate=datetime(2026, 3, 2))
    return root


def _source() -> NotebookNode:
    solved = SOLUTION.replace("    return", "    ### BEGIN SOLUTION\n    return") + "    ### END SOLUTION\n"
    cells = [
        new_markdown_cell("# Lab 00: <i>Warm-up</i>", id="00-c001"),
        new_code_cell(
            "import torch\n\nfrom labkit import check", id="00-setup", metadata=_meta("00-setup", locked=True)
        ),
        new_code_cell(solved, id="00-warm-up", metadata=_meta("00-warm-up", solution=True)),
        new_code_cell(
            'check("00-warm-up", rms)', id="00-check", metadata=_meta("00-warm-up-check", grade=True, points=1)
        ),
        new_code_cell("assert rms(torch.ones(3), 0) == 1", id=TEST, metadata=_meta(TEST, grade=True, points=2)),
        new_markdown_cell("An answer.", id=OPEN, metadata=_meta(OPEN, grade=True, solution=True, points=2)),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _meta(grade_id: str, **more) -> dict:
    locked = more.get("grade", False) and not more.get("solution", False)
    base = {"grade_id": grade_id, "schema_version": 3, "grade": False, "solution": False, "locked": locked}
    return {"nbgrader": {**base, "task": False, **more}}


def _grade_by_hand(course: Course, student: str, points: float) -> None:
    """As the formgrader does it."""
    with _gradebook(course) as gradebook:
        grade = gradebook.find_grade(OPEN, LAB, LAB, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


def _gradebook(course: Course) -> Gradebook:
    return Gradebook(f"sqlite:///{course.root / 'gradebook.db'}", "numerics")
