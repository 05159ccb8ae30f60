"""Behind any answer that its check accepts, a student's notebook runs on: figures, measurements, comparisons.

The cells below an exercise call the answer on inputs of their own. What they take for granted there, a check has to ask
for, or a student whose answer was right meets an error that is not theirs. The checks are left out: tests/exercises
runs them on each answer.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from grading.build import build
from grading.demo.answers import known
from grading.demo.examples import paths
from grading.site.kernel import run_notebook
from labkit import exercises
from tests.notebooks.test_notebooks import HANG_S, SOURCES

MOST_BYTES = 10 * 2**30
"""Of a kernel's own memory: more than a laptop has to spare."""

pytestmark = [pytest.mark.full("answers"), pytest.mark.later, pytest.mark.timeout(2 * HANG_S)]


def each_place() -> list[object]:
    """Of each lab as many places as the exercise has answers that has most of them."""
    found = []
    for source in SOURCES:
        lab = source.stem[:2]
        n_places = max(len(paths("right", exercise_id)) for exercise_id in exercises.of_lab(lab))
        marks = pytest.mark.lab(lab)
        found += [pytest.param(source, n, id=f"{source.stem}-{n + 1}", marks=marks) for n in range(n_places)]
    return found


@pytest.mark.parametrize(("source", "place"), each_place())
def test_the_notebook_runs_on_behind_unusual_right_answers(source: Path, place: int, tmp_path: Path) -> None:
    """Together the places try every answer in tests/right: the first of each exercise, the second of each, and so on."""
    right = {exercise_id: known("right", exercise_id) for exercise_id in exercises.of_lab(source.stem[:2])}
    answers = {exercise_id: texts[place] for exercise_id, texts in right.items() if place < len(texts)}
    if failures := errors_of(run(with_answers(build(source).solution, answers), tmp_path)):
        pytest.fail("\n\n".join(failures), pytrace=False)


def with_answers(notebook: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    """The solved notebook with these answers in place of ours, by the names of their cells, and without checks.

    Its last cell, which tries all answers once more for a table, is such a check.
    """
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id.endswith("-check"):
            # What else stands in its cell is needed.
            cell.source = f"check = lambda *answers: None\n{cell.source}"
        if cell.cell_type == "code" and cell.source.startswith("progress("):
            cell.source = ""
        if grade_id in answers:
            magic = [line for line in cell.source.splitlines()[:1] if line.startswith("%%")]
            cell.source = "\n".join([*magic, answers[grade_id]])
    return notebook


def run(notebook: NotebookNode, folder: Path) -> NotebookNode:
    with memory_limited():
        return run_notebook(notebook, folder, HANG_S, also_past_errors=True)


@contextlib.contextmanager
def memory_limited() -> Iterator[None]:
    """For programs that are started meanwhile: more than MOST_BYTES is refused them."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def errors_of(notebook: NotebookNode) -> list[str]:
    """Of each cell that failed its text's beginning and its error."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                name = f"cell {cell.id}: {output.ename}: {output.evalue}"
                found.append("\n".join([name, *cell.source.splitlines()[:12]]))
    return found


@pytest.mark.parametrize(
    ("body", "error"), [("raise ValueError('not this one')", "ValueError"), ("bytearray(11 * 2**30)", "MemoryError")]
)
def test_a_cell_that_fails_is_told_with_its_text(body: str, error: str, tmp_path: Path) -> None:
    """The control."""
    cells = [new_code_cell("def answer(): ...", metadata={"nbgrader": {"grade_id": "00-answer"}})]
    cells += [new_code_cell("answer()"), new_code_cell("print('this ran')")]
    notebook = with_answers(new_notebook(cells=cells), {"00-answer": f"def answer():\n    {body}"})
    (failure,) = errors_of(run(notebook, tmp_path))
    assert failure.startswith(f"cell {cells[1].id}: {error}") and failure.endswith("\nanswer()")
    assert "this ran" in cells[2].outputs[0].text
