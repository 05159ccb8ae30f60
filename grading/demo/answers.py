"""What demo students can answer: the solutions, and answers from the tests that are known to be wrong or right.

Nothing is made up here, so an exercise that is added to the course comes with its demo answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grading.errors import UserError
from grading.gradebook.course import Course
from labkit import exercises

TESTS = Path(__file__).resolve().parents[2] / "tests"


@dataclass(frozen=True)
class LabAnswers:
    """One lab's released notebook, and the answers by exercise: its cell has the same name.

    wrong and right may be empty for an exercise.
    """

    lab: str
    released: NotebookNode
    solved: dict[str, str]
    wrong: dict[str, tuple[str, ...]]
    right: dict[str, tuple[str, ...]]

    @property
    def exercises(self) -> tuple[str, ...]:
        return tuple(self.solved)


def answers_of(course: Course, lab: str) -> LabAnswers:
    """The answers to a released lab. Raises UserError where the known answers of the tests are missing."""
    if not any((TESTS / "wrong").glob("*.py")):
        raise UserError(f"{TESTS / 'wrong'} has no answers", "run the demo from a full checkout")
    solved = _solutions(nbformat.read(course.source(lab), as_version=4), lab)
    return LabAnswers(
        lab=lab,
        released=nbformat.read(course.root / "release" / lab / f"{lab}.ipynb", as_version=4),
        solved=solved,
        wrong={exercise: _known("wrong", exercise) for exercise in solved},
        right={exercise: _known("right", exercise) for exercise in solved},
    )


def _solutions(notebook: NotebookNode, lab: str) -> dict[str, str]:
    """The solved answer cells of the lab's exercises, without the lines that mark a solution."""
    found = {}
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in exercises.of_lab(lab[:2]):
            lines = cell.source.splitlines()
            found[grade_id] = "\n".join(line for line in lines if not line.strip().startswith("### "))
    return found


def _known(folder: str, exercise: str) -> tuple[str, ...]:
    """The answers under tests/, without their first line, which is for the tests."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((TESTS / folder).glob(f"{exercise}__*.py")))
    return tuple("\n".join(text.splitlines()[1:]).strip("\n") for text in texts)
