"""A small solved notebook with every kind of cell, and ways of turning its release into submissions."""

from __future__ import annotations

import atexit
import copy
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from grading.course import Course
from grading.gradebook.provenance import recorded_basis
from grading.gradebook.setup import CONFIG_TEXT, release
from grading.pipeline import grade_lab
from grading.results import Ungraded

ROOT = Path(__file__).resolve().parents[2]
LAB = "00_small"
SOLUTION = "def rms(x, dim):\n    return x.double().pow(2).mean(dim).sqrt().to(x.dtype)"
HIDDEN_TEST = "assert float(rms(torch.full((5,), 3.0), 0)) == 3"


def solved() -> NotebookNode:
    """One supervised exercise, one plain nbgrader test with a hidden part, one manual question, one figure."""
    marked = SOLUTION.replace("    return", "    ### BEGIN SOLUTION\n    return") + "\n    ### END SOLUTION"
    plain = f"assert rms(torch.ones(3), 0) == 1\n### BEGIN HIDDEN TESTS\n{HIDDEN_TEST}\n### END HIDDEN TESTS"
    cells = [
        _cell("00-setup", "import torch\nfrom labkit import check", locked=True),
        _cell("00-warm-up", marked, solution=True),
        _cell("00-warm-up-check", 'check("00-warm-up", rms)', grade=True, locked=True, points=1),
        _cell("00-plain", plain, grade=True, locked=True, points=2),
        _cell("00-open", "a model answer", kind="markdown", grade=True, solution=True, points=2),
        new_code_cell("raise RuntimeError('a figure is not drawn when graded')", id="00-c006"),
        new_code_cell("unchanged = 1", id="00-c007"),
    ]
    cells[5].metadata["tags"] = ["figure"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _cell(grade_id: str, source: str, kind: str = "code", **flags: object) -> NotebookNode:
    meta = {
        "grade_id": grade_id,
        "schema_version": 3,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
    }
    make = new_code_cell if kind == "code" else new_markdown_cell
    return make(source, id=grade_id, metadata={"nbgrader": {**meta, **flags}})


def make_course(root: Path, extra_config: str = "") -> Course:
    """A released course with the small lab in it: made once for each configuration, and copied."""
    root.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(_pristine(extra_config), root)
    return Course.at(root)


@functools.cache
def _pristine(extra_config: str) -> Path:
    home = Path(tempfile.mkdtemp(prefix="pristine-course-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    root = home / "course"
    (root / "source" / LAB).mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG_TEXT.format(course_id="small") + extra_config)
    nbformat.write(solved(), root / "source" / LAB / f"{LAB}.ipynb")
    course = Course.at(root)
    course.make_key()
    release(course, [LAB])
    return root


def released(course: Course) -> NotebookNode:
    return nbformat.read(course.root / "release" / LAB / f"{LAB}.ipynb", 4)


def submit(
    course: Course,
    student: str,
    answer: str | None = SOLUTION,
    change: Callable[[NotebookNode], None] | None = None,
    timestamp: str | None = None,
) -> Path:
    """Hand in the released notebook with this answer (None leaves it blank), after `change` has been at it."""
    notebook = copy.deepcopy(released(course))
    if answer is not None:
        cell_of(notebook, "00-warm-up").source = answer
    if change is not None:
        change(notebook)
    path = course.submitted(LAB, student)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    if timestamp:
        (path.parent / "timestamp.txt").write_text(timestamp)
    return path


def grade(
    course: Course, lab: str, students: list[str], workers: int, isolation: str = "auto", cluster: str | None = None
) -> list[Ungraded]:
    """Grade these students' submissions; returns those that got no grade, with the reason."""
    return grade_lab(course, lab, students, workers, isolation, cluster).ungraded


def written_key(course: Course, lab: str, student: str) -> str | None:
    """The key of the job whose result is in the graded notebook; None where there is no graded notebook."""
    return recorded_basis(course.autograded(lab, student)).job


def cell_of(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def index_of(notebook: NotebookNode, cell_id: str) -> int:
    return next(index for index, cell in enumerate(notebook.cells) if cell.id == cell_id)


def points(course: Course, student: str) -> dict[str, float]:
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        submission = gradebook.find_submission(LAB, student)
        return {grade.name: grade.auto_score for notebook in submission.notebooks for grade in notebook.grades}


def command(course: Course, *words: str, **options) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=course.root, env=environment, text=True, capture_output=True, **options
    )
