"""Write a result into the rebuilt notebook, in the form from which nbgrader reads points and makes feedback.

A failed cell holds an error, a passed one none, a partial one its points as a result: nbgrader's own conventions. The
extra credit of an optional exercise, for which nbgrader has no sign, is noted in the cell's metadata.
Everything of the student's that is shown is text, and hidden cases show a diagnosis and a hint only.
"""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from grading.gradebook.provenance import METADATA, extended_until, metadata_of
from grading.gradebook.scores import EXTRA
from grading.rebuild import TemplateCell
from grading.submissions import Prepared
from grading.supervisor.result import CellResult, ExerciseResult, SubmissionResult
from labkit import exercises
from labkit.check.html import as_html
from labkit.check.points import with_points
from labkit.check.text import as_text
from labkit.check.verdict import Verdict


def write_results(
    notebook: NotebookNode, prepared: Prepared, result: SubmissionResult, basis: dict[str, str]
) -> NotebookNode:
    """Fill in the outputs of a rebuilt notebook, and note the basis of the grade in its metadata."""
    cells = {cell.id: cell for cell in prepared.merged.cells}
    for node in notebook.cells:
        grade_id = node.metadata.get("nbgrader", {}).get("grade_id", node.id)
        merged = cells.get(grade_id)
        if merged is None or node.cell_type != "code":
            continue
        slot = merged.template
        if slot is not None and slot.kind == "check":
            node.outputs = exercise_outputs(result.exercises[slot.exercise], slot)
            if slot.extra:
                node.metadata[EXTRA] = result.exercises[slot.exercise].score * slot.extra
        elif slot is not None and slot.kind == "test":
            node.outputs = test_outputs(result.cells[grade_id], slot)
        elif grade_id in result.cells:
            node.outputs = cell_outputs(result.cells[grade_id])
    notebook.metadata[METADATA] = metadata_of(result, basis)
    if until := extended_until(basis):
        notebook.cells.insert(0, _extension_note(until, {node.id for node in notebook.cells}))
    return notebook


def _extension_note(until: str, taken: set[str]) -> NotebookNode:
    name = "extension"
    while name in taken:
        name += "-"
    text = f"**Extension.** For you this lab was due by {until} UTC. A late penalty counts from then on."
    return new_markdown_cell(text, id=name)


def exercise_outputs(result: ExerciseResult, slot: TemplateCell) -> list[NotebookNode]:
    """A box with the verdict, and nbgrader's sign for its points."""
    verdict = with_points(result.shown, exercises.find(slot.exercise).points, slot.worth)
    return [_box(verdict), *_points_sign(result.score, slot.points, slot.extra)]


def test_outputs(result: CellResult, slot: TemplateCell) -> list[NotebookNode]:
    """A plain nbgrader test: run beside the student's code, so what it says is taken on trust, and marked so."""
    share = test_share(result, slot.points)
    headline = f"{slot.id}: {'passed' if share == 1 else 'not passed'} (unsupervised test)."
    rows = (("problem", result.error),) if result.error else ()
    outcome = "passed" if share == 1 else "partial" if share else "failed"
    return [_box(Verdict(slot.id, outcome, share, headline, rows)), *_points_sign(share, slot.points)]


def test_share(result: CellResult, points: float) -> float:
    """The share of a plain test's points: nbgrader's rules, with partial credit kept between 0 and the maximum."""
    if not result.ok:
        return 0.0
    try:
        partial = float(result.value)
    except (TypeError, ValueError):
        return 1.0
    # NaN compares false with everything, so it earns nothing.
    return min(partial / points, 1.0) if points and partial >= 0 else 0.0


def cell_outputs(result: CellResult) -> list[NotebookNode]:
    """What a cell printed, and its error, as text."""
    outputs = [new_output("stream", name="stdout", text=result.printed)] if result.printed else []
    if result.error:
        outputs.append(new_output("stream", name="stdout", text=f"{result.error}\n"))
    return outputs


def _box(verdict: Verdict) -> NotebookNode:
    return new_output("display_data", data={"text/plain": as_text(verdict), "text/html": as_html(verdict)})


def _points_sign(share: float, points: float, extra: float = 0.0) -> list[NotebookNode]:
    """The box above says why; this only tells nbgrader how much, which for extra credit alone is nothing."""
    if share >= 1:
        return []
    if share > 0:
        return [new_output("execute_result", data={"text/plain": repr(share * points)}, execution_count=None)]
    text = f"0 of {extra:g} extra points" if extra else f"0 of {points:g} points"
    return [new_output("error", ename="NotPassed", evalue=text, traceback=[text])]
