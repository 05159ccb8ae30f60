"""A small contest, handed in and really graded: lab 94, whose scripts are read and never played."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import grading.board.entries as entries
import grading.board.scripts as scripts
import grading.board.verify as verifying
import grading.commands.leaderboard as command
import grading.pipeline.stream as streams
from grading.course import Course
from grading.gradebook.setup import CONFIG_TEXT, release
from grading.supervisor.run import close_sandboxes
from tests.grading.fake_labs import registered, tree_with_fake_labs
from tests.grading.in_process import graded_in_process
from tests.grading.lessons import grade

LAB, EXERCISE = "94_contest", "94-script"
EVIL = "<img src=x onerror=alert(1)> {{ 7 * 7 }}"
FORMULA = '=HYPERLINK("x"; "y")'


@contextmanager
def contest() -> Iterator[None]:
    """Within the block lab 94 is the one that the leaderboard is about, and is graded in this process."""
    with registered("94"), graded_in_process(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "shared_worker_tree", tree_with_fake_labs)
        for module in (entries, scripts, verifying, command):
            patch.setattr(module, "EXERCISE", EXERCISE)
        # A sandbox that this process keeps may know the course's own labs alone.
        close_sandboxes()
        yield
        close_sandboxes()


def script(steps: int, machine: str = "basement", changed: str = "", more: str = "") -> str:
    """The text of an answer's cell."""
    declared = f'MACHINE = "{machine}"\nSTEPS = {steps}\nCHANGED = {changed!r}\n{more}'
    return f"{declared}\n\ndef setup(run):\n    return None\n\n\ndef step(run, state, number):\n    pass\n"


def empty_contest(root: Path) -> Course:
    shutil.copytree(_pristine(), root)
    return Course.at(root)


@functools.cache
def _pristine() -> Path:
    home = Path(tempfile.mkdtemp(prefix="pristine-contest-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    root = home / "course"
    (root / "source" / LAB).mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG_TEXT.format(course_id="records"))
    solved = script(100).replace("    return None", "    ### BEGIN SOLUTION\n    return None\n    ### END SOLUTION")
    cells = [
        new_code_cell(solved, id=EXERCISE, metadata=_meta(EXERCISE, solution=True)),
        new_code_cell(
            f'check("{EXERCISE}", STEPS)',
            id=f"{EXERCISE}-check",
            metadata=_meta(f"{EXERCISE}-check", grade=True, locked=True, points=2),
        ),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, root / "source" / LAB / f"{LAB}.ipynb")
    course = Course.at(root)
    course.make_key()
    release(course, [LAB])
    return root


def _meta(grade_id: str, **flags: object) -> dict:
    base = {"grade_id": grade_id, "schema_version": 3, "grade": False, "solution": False, "locked": False}
    return {"nbgrader": {**base, "task": False, **flags}}


def hand_in(course: Course, student: str, text: str | None, when: str = "2026-03-01 10:00:00") -> None:
    """As nbgrader collects it; None leaves the answer blank."""
    notebook = nbformat.read(course.root / "release" / LAB / f"{LAB}.ipynb", 4)
    if text is not None:
        notebook.cells[0].source = text
    path = course.submitted(LAB, student)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    (path.parent / "timestamp.txt").write_text(f"{when} UTC")


def graded(course: Course, *students: str, isolation: str = "none") -> None:
    assert grade(course, LAB, list(students) or course.students(LAB), workers=1, isolation=isolation) == []
