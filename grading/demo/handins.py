"""The ways in which demo students do their labs: each makes a file from a lab's answers, and says what it earns.

Every function takes (answers, generator) and returns a Made. Which student does which is the roster's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from random import Random

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from grading.demo.answers import LabAnswers
from labkit import exercises

NOISE = 'import sys, warnings\nwarnings.warn("this will be deprecated")\nprint("loading ...", file=sys.stderr)\n'
LOOP = "def {name}(*args, **kwargs):\n    while True:\n        pass\n"
SYNTAX_ERROR = "def {name}(x, dim)\n    return x\n"


@dataclass(frozen=True)
class Made:
    """A submitted file's text, and the exercises that it earns all points for; None: it cannot be graded."""

    text: str
    earns: frozenset[str] | None


def perfect(lab: LabAnswers, generator: Random) -> Made:
    return _made(_filled(lab, lab.solved), lab.exercises)


def blank(lab: LabAnswers, generator: Random) -> Made:
    return _made(_filled(lab, {}), ())


def partly_wrong(lab: LabAnswers, generator: Random) -> Made:
    """Some exercises solved, some with a typical mistake, a few left out."""
    answers, earned = {}, []
    for exercise in lab.exercises:
        draw = generator.random()
        if draw < 0.5 or not lab.wrong[exercise]:
            answers[exercise] = lab.solved[exercise]
            earned.append(exercise)
        elif draw < 0.9:
            answers[exercise] = generator.choice(lab.wrong[exercise])
    return _made(_filled(lab, answers), earned)


def own_style(lab: LabAnswers, generator: Random) -> Made:
    """Right answers, but other ones than ours."""
    known = {exercise: lab.right[exercise] or (lab.solved[exercise],) for exercise in lab.exercises}
    return _made(_filled(lab, {exercise: generator.choice(texts) for exercise, texts in known.items()}), lab.exercises)


def noisy(lab: LabAnswers, generator: Random) -> Made:
    """Warnings and messages on stderr in every answer, and in a cell of the student's own."""
    notebook = _filled(lab, {exercise: NOISE + text for exercise, text in lab.solved.items()})
    notebook.cells.insert(1, new_code_cell(NOISE, id="mine"))
    return _made(notebook, lab.exercises)


def syntax_error(lab: LabAnswers, generator: Random) -> Made:
    return _spoiled(lab, lab.exercises[0], SYNTAX_ERROR.format(name="answer"))


def endless_loop(lab: LabAnswers, generator: Random) -> Made:
    """The last exercise never returns, whatever its functions are called."""
    text = "\n\n".join(LOOP.format(name=name) for name in _names(lab.exercises[-1]))
    return _spoiled(lab, lab.exercises[-1], text)


def ends_the_process(lab: LabAnswers, generator: Random) -> Made:
    notebook = _filled(lab, lab.solved)
    notebook.cells.insert(1, new_code_cell("import os\nos._exit(0)", id="mine-first"))
    notebook.cells.append(new_code_cell("import sys\nsys.exit(1)", id="mine-last"))
    return _made(notebook, lab.exercises)


def duplicated_cell(lab: LabAnswers, generator: Random) -> Made:
    """An answer cell copied and pasted: the copy keeps nbgrader's name."""
    notebook = _filled(lab, lab.solved)
    position = _position(notebook, lab.exercises[-1])
    copy = deepcopy(notebook.cells[position])
    copy.id = "pasted"
    notebook.cells.insert(position + 1, copy)
    return _made(notebook, lab.exercises)


def renamed_cell(lab: LabAnswers, generator: Random) -> Made:
    """The name of an answer cell was edited: nobody can know any more what it answers."""
    notebook = _filled(lab, lab.solved)
    cell = notebook.cells[_position(notebook, lab.exercises[-1])]
    cell.metadata.nbgrader.grade_id = cell.id = "my-answer"
    return _made(notebook, lab.exercises[:-1])


def deleted_check(lab: LabAnswers, generator: Random) -> Made:
    notebook = _filled(lab, lab.solved)
    notebook.cells = [cell for cell in notebook.cells if not cell.metadata.get("nbgrader", {}).get("grade")]
    return _made(notebook, lab.exercises)


def truncated(lab: LabAnswers, generator: Random) -> Made:
    """The upload broke off."""
    text = nbformat.writes(_filled(lab, lab.solved))
    return Made(text[: len(text) // 2], None)


def _made(notebook: NotebookNode, earns: tuple[str, ...] | list[str]) -> Made:
    return Made(nbformat.writes(notebook) + "\n", frozenset(earns))


def _spoiled(lab: LabAnswers, exercise: str, text: str) -> Made:
    return _made(_filled(lab, {**lab.solved, exercise: text}), [each for each in lab.exercises if each != exercise])


def _filled(lab: LabAnswers, answers: Mapping[str, str]) -> NotebookNode:
    notebook = deepcopy(lab.released)
    for exercise, text in answers.items():
        notebook.cells[_position(notebook, exercise)].source = text
    return notebook


def _position(notebook: NotebookNode, grade_id: str) -> int:
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    return ids.index(grade_id)


def _names(exercise: str) -> list[str]:
    return [answer.name for answer in exercises.find(exercise).answers]
