"""The ways in which demo students do their labs: each makes a file from a lab's answers, and says what it earns.

Every function takes (answers, generator) and returns a DemoSubmission. Which student does which, the roster says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
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
class DemoSubmission:
    """A submitted file's text, and the exercises that it earns all points for; None: it cannot be graded.

    by_hand: the share of the points that a person gives for a cell that is graded by hand.
    """

    text: str
    earns: frozenset[str] | None
    by_hand: Mapping[str, float] = field(default_factory=dict)


def perfect(lab: LabAnswers, generator: Random) -> DemoSubmission:
    return _made(lab, _filled(lab, lab.solved), lab.exercises)


def blank(lab: LabAnswers, generator: Random) -> DemoSubmission:
    return DemoSubmission(nbformat.writes(lab.released) + "\n", frozenset())


def partly_wrong(lab: LabAnswers, generator: Random) -> DemoSubmission:
    """Some exercises solved, some with a typical mistake, a few left out; the same for what a person grades."""
    answers, earned = {}, []
    by_hand = {cell: generator.choice((0.5, 1.0)) for cell in lab.essays if generator.random() < 0.7}
    for exercise in lab.exercises:
        draw = generator.random()
        if draw < 0.5 or not lab.wrong[exercise]:
            answers[exercise] = lab.solved[exercise]
            earned.append(exercise)
        elif draw < 0.9:
            answers[exercise] = generator.choice(lab.wrong[exercise])
    return _made(lab, _filled(lab, answers, by_hand), earned, by_hand)


def own_style(lab: LabAnswers, generator: Random) -> DemoSubmission:
    """Right answers, but other ones than the solutions."""
    known = {exercise: lab.right[exercise] or (lab.solved[exercise],) for exercise in lab.exercises}
    chosen = {exercise: generator.choice(texts) for exercise, texts in known.items()}
    return _made(lab, _filled(lab, chosen), lab.exercises)


def noisy(lab: LabAnswers, generator: Random) -> DemoSubmission:
    """Warnings and messages on stderr in every answer, and in a cell of the student's own."""
    notebook = _filled(lab, {exercise: NOISE + text for exercise, text in lab.solved.items()})
    notebook.cells.insert(1, new_code_cell(NOISE, id="mine"))
    return _made(lab, notebook, lab.exercises)


def syntax_error(lab: LabAnswers, generator: Random) -> DemoSubmission:
    return _spoiled(lab, lab.exercises[0], SYNTAX_ERROR.format(name="answer"))


def endless_loop(lab: LabAnswers, generator: Random) -> DemoSubmission:
    """One exercise never returns."""
    exercise = _least_used(lab)
    return _spoiled(lab, exercise, "\n\n".join(LOOP.format(name=name) for name in _names(exercise)))


def ends_the_process(lab: LabAnswers, generator: Random) -> DemoSubmission:
    notebook = _filled(lab, lab.solved)
    notebook.cells.insert(1, new_code_cell("import os\nos._exit(0)", id="mine-first"))
    notebook.cells.append(new_code_cell("import sys\nsys.exit(1)", id="mine-last"))
    return _made(lab, notebook, lab.exercises)


def duplicated_cell(lab: LabAnswers, generator: Random) -> DemoSubmission:
    """An answer cell copied and pasted: the copy keeps nbgrader's name."""
    notebook = _filled(lab, lab.solved)
    position = _position(notebook, lab.exercises[-1])
    copy = deepcopy(notebook.cells[position])
    copy.id = "pasted"
    notebook.cells.insert(position + 1, copy)
    return _made(lab, notebook, lab.exercises)


def renamed_cell(lab: LabAnswers, generator: Random) -> DemoSubmission:
    """The name of an answer cell was edited: it counts as a cell of the student's own, and still runs."""
    notebook = _filled(lab, lab.solved)
    cell = notebook.cells[_position(notebook, lab.exercises[-1])]
    cell.metadata.nbgrader.grade_id = cell.id = "my-answer"
    return _made(lab, notebook, lab.exercises)


def deleted_check(lab: LabAnswers, generator: Random) -> DemoSubmission:
    notebook = _filled(lab, lab.solved)
    checks = {f"{exercise}-check" for exercise in lab.exercises}
    kept = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") not in checks]
    notebook.cells = kept
    return _made(lab, notebook, lab.exercises)


def truncated(lab: LabAnswers, generator: Random) -> DemoSubmission:
    """The upload broke off."""
    text = nbformat.writes(_filled(lab, lab.solved))
    return DemoSubmission(text[: len(text) // 2], None)


def _made(
    lab: LabAnswers, notebook: NotebookNode, earns: Iterable[str], by_hand: Mapping[str, float] | None = None
) -> DemoSubmission:
    """Where nothing else is said, the essays are perfect."""
    by_hand = dict.fromkeys(lab.essays, 1.0) if by_hand is None else by_hand
    return DemoSubmission(nbformat.writes(notebook) + "\n", frozenset(earns), by_hand)


def _spoiled(lab: LabAnswers, exercise: str, text: str) -> DemoSubmission:
    earns = [each for each in lab.exercises if each != exercise]
    return _made(lab, _filled(lab, {**lab.solved, exercise: text}), earns)


def _filled(lab: LabAnswers, answers: Mapping[str, str], essays: Iterable[str] | None = None) -> NotebookNode:
    """The released notebook with these answers, and with all essays or the named ones."""
    notebook = deepcopy(lab.released)
    written = {cell: lab.essays[cell] for cell in (lab.essays if essays is None else essays)}
    for cell, text in {**answers, **written}.items():
        notebook.cells[_position(notebook, cell)].source = text
    return notebook


def _position(notebook: NotebookNode, grade_id: str) -> int:
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    return ids.index(grade_id)


def _names(exercise: str) -> list[str]:
    return [answer.name for answer in exercises.find(exercise).answers]


def _least_used(lab: LabAnswers) -> str:
    """The exercise whose functions the fewest of the notebook's own cells call: each would wait for them in vain."""
    own = [cell.source for cell in lab.released.cells if cell.cell_type == "code" and not cell.metadata.get("nbgrader")]
    used = {each: sum(any(name in source for name in _names(each)) for source in own) for each in lab.exercises}
    return min(lab.exercises, key=used.__getitem__)
