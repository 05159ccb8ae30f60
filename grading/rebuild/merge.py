"""Lay a submission's answers onto the template, and keep the student's added cells after the cell they followed.

Locked, test and duplicated cells come from the template. A second cell with an answer's id counts as an added one,
because that is how it ran in the student's notebook.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from grading.rebuild.dependencies import needed
from grading.rebuild.readable import make_readable
from grading.rebuild.submission import Submission, SubmittedCell
from grading.rebuild.template import Template, TemplateCell
from grading.worker.protocol.steps import RunCode, RunTest, ServeExercise, Step
from labkit import exercises

START = ""
TURN = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Overrides, embeddings and isolates, by which text on a screen stands in another order than it is."""


@dataclass(frozen=True)
class MergedCell:
    """One cell of the rebuilt notebook; `template` is None for a cell that the student added."""

    id: str
    cell_type: str
    source: str
    origin: Literal["template", "answer", "added"]
    template: TemplateCell | None = None


@dataclass(frozen=True)
class Merged:
    """The rebuilt notebook, and what was odd about the submission, in words for the instructor."""

    cells: tuple[MergedCell, ...]
    notes: tuple[str, ...]


def merge(template: Template, submission: Submission) -> Merged:
    """The template with the submission's answers in it."""
    known = {cell.id: cell for cell in template.cells}
    answers: dict[str, SubmittedCell] = {}
    added: dict[str, list[SubmittedCell]] = defaultdict(list)
    more: list[str] = []
    last_known = START
    for cell in submission.cells:
        slot = known.get(cell.id)
        if slot is None:
            added[last_known].append(cell)
        elif slot.kind in ("answer", "manual", "prediction"):
            if cell.id in answers:
                more.append(cell.id)
                added[last_known].append(cell)
            else:
                answers[cell.id] = cell
                last_known = cell.id
        else:
            if slot.kind == "code" and cell.cell_type == "code" and cell.source.strip() != slot.source.strip():
                added[cell.id].append(cell)
            last_known = cell.id
    notes = [_of_duplicates(cell_id, 1 + n) for cell_id, n in Counter(more).items()]
    merged = _added(START, added)
    follows = 0
    for slot in template.cells:
        answer = answers.get(slot.id)
        cell = MergedCell(slot.id, slot.cell_type, slot.source, "template", slot)
        if answer is not None:
            cell = replace(cell, source=answer.source, origin="answer")
        if slot.kind in ("answer", "manual") and answer is None:
            # Before the added cells: if one of them is the answer under another name, it comes after the blank one.
            merged.insert(follows, cell)
            notes.append(f"cell {slot.id} is missing: the blank one stands in for it")
        else:
            merged.append(cell)
            follows = len(merged)
        merged += _added(slot.id, added)
    turned = [cell.id for cell in merged if cell.cell_type == "code" and TURN.search(cell.source)]
    if turned:
        text = "turns the direction of writing, so that it does not read as it runs: look at it with `explain`"
        notes.append(f"{_all_of(turned)} {text}")
    return Merged(tuple(merged), tuple(notes))


def _all_of(cells: list[str]) -> str:
    return f"cell {cells[0]}" + (f" (and {len(cells) - 1} more)" if len(cells) > 1 else "")


def _of_duplicates(cell_id: str, n: int) -> str:
    if n == 2:
        return f"cell {cell_id} is there twice: the first counts as the answer, the other runs after it"
    return f"cell {cell_id} is there {n} times: the first counts as the answer, the others run after it"


def _added(after: str, added: dict[str, list[SubmittedCell]]) -> list[MergedCell]:
    cells = enumerate(added.get(after, ()), start=1)
    return [
        MergedCell(f"{after or 'top'}-added-{n}"[-64:], cell.cell_type, cell.source, "added")
        for n, cell in cells
        if cell.cell_type in ("code", "markdown")
    ]


def rebuilt_notebook(template: Template, merged: Merged) -> NotebookNode:
    """The merged cells as a notebook, without outputs; metadata from the template alone."""
    released = {
        cell_id: cell for cell_id, cell in zip((c.id for c in template.cells), template.notebook.cells, strict=True)
    }
    notebook = deepcopy(template.notebook)
    notebook.cells, own = [], []
    for cell in merged.cells:
        if cell.template is not None:
            node = deepcopy(released[cell.id])
            node.source = cell.source
        else:
            node = new_code_cell(cell.source) if cell.cell_type == "code" else new_markdown_cell(cell.source)
            node.id = cell.id
        if cell.cell_type == "markdown" and cell.origin != "template":
            node.source = _without_tags(cell.source)
        if cell.origin != "template":
            own.append(node)
        notebook.cells.append(node)
    make_readable(own)
    return notebook


def _without_tags(markdown: str) -> str:
    """The same to a reader, but no HTML, no links but to the web and no pictures: zero-width spaces break what could be
    one. A picture is fetched unasked, which tells who reads when, and reaches servers of the reader's own machine.

    What a student writes is shown to others, in feedback pages and in the formgrader, with their rights.
    """
    # "*+": however many blanks follow, nothing looks back.
    without_links = re.sub(r"\](?=\s*+[(\[:](?!\s*+<?\s*+(?:https?://|mailto:|#)))", "]\u200b", markdown)
    without_pictures = without_links.replace("![", "!\u200b[")
    return re.sub(r"<(?=[A-Za-z/!?])", "<\u200b", without_pictures)


def steps_of(merged: Merged) -> list[Step]:
    """What a worker does with the merged cells, in order: run code, serve an exercise, run a plain test."""
    idle = _idle(merged)
    steps: list[Step] = []
    for cell in merged.cells:
        slot = cell.template
        if slot is not None and slot.kind == "check":
            texts = _text_answers(slot.exercise, merged)
            steps.append(ServeExercise(cell.id, slot.exercise, texts))
        elif slot is not None and slot.kind == "test":
            if cell.cell_type == "code":
                steps.append(RunTest(cell.id, slot.full_source))
        elif cell.cell_type == "code" and cell.id not in idle:
            steps.append(RunCode(cell.id, cell.source))
    return steps


def _idle(merged: Merged) -> set[str]:
    """The template's own figures and demonstrations, less those whose names another cell looks up.

    A prediction as it was released is one of them; what a student wrote in its place runs like any cell of theirs.
    """
    figures, demos, others = set(), [], []
    for cell in merged.cells:
        slot = cell.template
        if slot is not None and slot.is_figure:
            figures.add(cell.id)
        elif slot is not None and (slot.kind == "code" or _is_left_as_released(cell, slot)):
            demos.append((cell.id, cell.source))
        elif slot is not None and slot.kind == "test":
            others.append(slot.full_source)
        elif cell.cell_type == "code" and not (slot is not None and slot.kind == "check"):
            others.append(cell.source)
    return figures | {cell_id for cell_id, _ in demos} - needed(demos, others)


def _is_left_as_released(cell: MergedCell, slot: TemplateCell) -> bool:
    return slot.kind == "prediction" and cell.source.strip() == slot.source.strip()


def program_of(merged: Merged) -> list[str]:
    """The plain Python of every code cell, magics and shell lines translated, for rules that are judged on text."""
    return [_plain_python(cell.source) for cell in merged.cells if cell.cell_type == "code"]


def _plain_python(source: str) -> str:
    try:
        return TransformerManager().transform_cell(source)
    except Exception:
        # What IPython cannot read it will not run either.
        return source


def _text_answers(exercise_id: str, merged: Merged) -> dict[str, str]:
    """The answers of kind "text": the source of their cells as submitted."""
    sources = {cell.id: cell.source for cell in merged.cells if cell.origin == "answer"}
    wanted = [answer for answer in exercises.find(exercise_id).answers if answer.kind == "text"]
    return {answer.name: sources[cell] for answer in wanted if (cell := answer.cell or exercise_id) in sources}
