"""What demo students can answer: the solutions, and answers from the tests that are known to be wrong or right.

Nothing is made up here, so an exercise that is added to the course comes with its demo answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode

from grading.course import Course
from grading.demo import examples
from grading.errors import UserError
from labkit import exercises


@dataclass(frozen=True)
class LabAnswers:
    """One lab's released notebook, and the answers by exercise: its cell has the same name.

    wrong and right may be empty for an exercise. essays are the answers to the cells that a person grades.
    """

    lab: str
    released: NotebookNode
    solved: dict[str, str]
    wrong: dict[str, tuple[str, ...]]
    right: dict[str, tuple[str, ...]]
    essays: dict[str, str]

    @property
    def exercises(self) -> tuple[str, ...]:
        return tuple(self.solved)


def require_known() -> None:
    """Raises UserError where the answers of the tests are missing, as in a copy without `tests/`."""
    if not any((examples.TESTS / "wrong").glob("*/*.py")):
        raise UserError(f"{examples.TESTS / 'wrong'} has no answers", "run the demo from a full checkout")


def answers_of(course: Course, lab: str) -> LabAnswers:
    """The answers to a released lab."""
    source = nbformat.read(course.source(lab), as_version=4)
    solved = solutions(source, lab)
    return LabAnswers(
        lab=lab,
        released=nbformat.read(course.root / "release" / lab / f"{lab}.ipynb", as_version=4),
        solved=solved,
        wrong={exercise: known("wrong", exercise) for exercise in solved},
        right={exercise: known("right", exercise) for exercise in solved},
        essays=essays(source),
    )


def solutions(notebook: NotebookNode, lab: str) -> dict[str, str]:
    """The solved answer cells of the lab's exercises, without the lines that mark a solution."""
    found = {}
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in exercises.of_lab(lab[:2]):
            found[grade_id] = _unmarked(cell.source)
    return found


def essays(notebook: NotebookNode) -> dict[str, str]:
    """The model answers of the cells that a person grades, without the marking scheme at their end."""
    found = {}
    for cell in notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if meta.get("grade") and meta.get("solution"):
            found[meta["grade_id"]] = _unmarked(cell.source).split("\n\nMarks:")[0]
    return found


def _unmarked(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if not line.strip().startswith("### "))


def known(folder: str, exercise: str) -> tuple[str, ...]:
    """The answers under tests/, as a student would have typed them."""
    return tuple(_typed(known.source) for known in examples.examples(folder, exercise))


def _typed(text: str) -> str:
    """With an import of NumPy where the answer takes it for granted."""
    answer = text.strip("\n")
    return f"import numpy as np\n\n{answer}" if "np." in answer and "import numpy" not in answer else answer
