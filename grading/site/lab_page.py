"""A lab's page: the student's notebook, under each cell what the solved one's gave.

Pictures become files, with their alternative texts. What shows an answer is left out, and so is what needs a running
notebook; of a figure with sliders its first picture stays. The solved notebook itself is never on a page.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from PIL import Image

from grading.build.compile import Built
from grading.site.answers import Answers, answers_of

FIGURES = "_static/figures"
WIDGET, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
HIDDEN = "What this cell shows gives an answer away, so it is left out here. You see it in your own notebook."
SLIDERS = "In the notebook, sliders or buttons change this figure."
OPENING = """:::{admonition} The lab to read
:class: tip

This page is the notebook as you get it, with the output of a solved run, so that you see what is ahead. To write the
answers and to run the checks, open your own copy: `make lab`, then `%s.ipynb`.
:::"""


def lab_page(lab: Built, executed: NotebookNode | None, figures: Path) -> NotebookNode:
    """The page as a notebook, without outputs where it has not run; its pictures go into the folder `figures`."""
    page = lab.student.copy()
    # In an older run another cell may have had this one's id.
    ran = {(cell.id, cell.source): cell for cell in executed.cells} if executed is not None else {}
    widgets = Widgets(executed.metadata.get("widgets", {}).get(STATE, {}).get("state", {}) if executed else {})
    answers = answers_of(lab.solution, lab.student)
    cells = []
    for cell in page.cells:
        cells.append(cell)
        if cell.cell_type == "code":
            is_answer = cell.metadata.get("nbgrader", {}).get("solution")
            same = ran.get((cell.id, cell.source))
            cell.outputs = _shown(same, answers, widgets, figures) if same and not is_answer else []
            cell.execution_count = None
        cell.metadata = {}
    cells.insert(1, new_markdown_cell(OPENING % lab.name, id="site-opening"))
    page.cells, page.metadata.widgets = cells, {}
    return page


class Widgets:
    """The widgets that were open when a notebook had run, by their ids."""

    def __init__(self, states: Mapping[str, Mapping]) -> None:
        self._states = states

    def outputs_of(self, model: str) -> Iterator[NotebookNode]:
        """What a widget and those inside it show first."""
        state = self._states.get(model, {}).get("state", {})
        yield from state.get("outputs", ())
        for child in state.get("children", ()):
            yield from self.outputs_of(str(child).removeprefix("IPY_MODEL_"))


def _shown(cell: NotebookNode, answers: Answers, widgets: Widgets, figures: Path) -> list[NotebookNode]:
    """The outputs of a cell as they stand on the page."""
    if not cell.outputs:
        return []
    if answers.are_shown_by(cell):
        return [_note(HIDDEN)]
    found: list[NotebookNode] = []
    for output in cell.outputs:
        data = output.get("data", {})
        if WIDGET in data:
            first = list(widgets.outputs_of(data[WIDGET]["model_id"]))
            found += [*(_static(one, figures) for one in first), _note(SLIDERS)]
        elif output.output_type != "error":
            found.append(_static(output, figures))
    return found


def _static(output: NotebookNode, figures: Path) -> NotebookNode:
    """The output with its picture as a file; any other as it is."""
    picture = output.get("data", {}).get("image/png")
    if picture is None:
        return output
    metadata = output.get("metadata", {}).get("image/png", {})
    name = _save(base64.b64decode(picture), figures)
    width, height = metadata.get("width"), metadata.get("height")
    size = f' width="{width}" height="{height}"' if width and height else ""
    alt = html.escape(metadata.get("alt") or "A figure that the text above describes.")
    return _of_html(f'<img src="../{FIGURES}/{name}" alt="{alt}"{size} loading="lazy" class="figure">')


def _save(picture: bytes, figures: Path) -> str:
    """Write a PNG under the name of its content, compressed; returns the name."""
    name = f"{hashlib.sha256(picture).hexdigest()[:16]}.png"
    path = figures / name
    if not path.exists():
        figures.mkdir(parents=True, exist_ok=True)
        compressed = io.BytesIO()
        Image.open(io.BytesIO(picture)).save(compressed, "PNG", compress_level=6)
        path.write_bytes(compressed.getvalue())
    return name


def _note(text: str) -> NotebookNode:
    return _of_html(f'<p class="site-note">{html.escape(text)}</p>')


def _of_html(text: str) -> NotebookNode:
    return new_output("display_data", data={"text/html": text})
