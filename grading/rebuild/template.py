"""The template of a lab: what the course released, and what each of its cells is for.

Made from the solved notebook in the course's `source/` folder by the same steps that made the students' version, so
hidden tests of plain nbgrader notebooks are known here though students never had them.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import nbformat
from nbformat import NotebookNode

from grading.build import student_version
from grading.build.stub import ClearSolutions, nbgrader_config
from labkit import exercises

CHECK_SUFFIX = "-check"
FIGURE_TAG = "figure"

CellKind = Literal["answer", "manual", "check", "test", "locked", "prediction", "code", "text"]


@dataclass(frozen=True)
class TemplateCell:
    """source is what students were given, full_source has the hidden tests as well. An optional exercise gives no
    points but extra credit.

    kind: "answer" and "manual" are the student's to fill, "check" is an exercise, "test" a plain nbgrader test. A
    "prediction" is the student's too, and worth nothing: an unlocked code cell that has an id.

        TemplateCell("02-decode-check", "check", "code", source='check("02-decode", decode)', full_source=…,
                     exercise="02-decode", points=2.0)
    """

    id: str
    kind: CellKind
    cell_type: str
    source: str
    full_source: str
    exercise: str | None = None
    points: float = 0.0
    extra: float = 0.0
    is_figure: bool = False

    @property
    def worth(self) -> float:
        """The most that the cell can give."""
        return self.points + self.extra


@dataclass(frozen=True)
class Template:
    """A lab's cells in order, and its release notebook for the metadata."""

    lab: str
    cells: tuple[TemplateCell, ...]
    notebook: NotebookNode

    @property
    def exercises(self) -> tuple[TemplateCell, ...]:
        """The cells that give points without a person: supervised exercises and plain tests."""
        return tuple(cell for cell in self.cells if cell.kind in ("check", "test"))


def read_template(path: Path) -> Template:
    """The template of the lab whose solved notebook is at `path`."""
    solved = nbformat.read(path, as_version=4)
    released = student_version(solved)
    full, _ = ClearSolutions(config=nbgrader_config()).preprocess(deepcopy(solved), {})
    cells = tuple(_cell(shown, whole) for shown, whole in zip(released.cells, full.cells, strict=True))
    return Template(path.stem, cells, released)


def _cell(shown: NotebookNode, whole: NotebookNode) -> TemplateCell:
    meta = shown.metadata.get("nbgrader", {})
    exercise = None
    kind: CellKind
    if meta.get("task") or (meta.get("grade") and meta.get("solution")):
        kind = "manual"
    elif meta.get("solution"):
        kind = "answer"
    elif meta.get("grade"):
        exercise = _exercise_of(meta["grade_id"])
        kind = "check" if exercise else "test"
    elif shown.cell_type != "code":
        kind = "text"
    elif meta.get("locked"):
        kind = "locked"
    else:
        kind = "prediction" if meta.get("grade_id") else "code"
    points = float(meta.get("points", 0) or 0)
    return TemplateCell(
        id=meta.get("grade_id") or shown.id,
        kind=kind,
        cell_type=shown.cell_type,
        source=shown.source,
        full_source=whole.source,
        exercise=exercise,
        points=points,
        extra=0.0 if points or exercise is None else _extra_of(exercise),
        is_figure=FIGURE_TAG in shown.metadata.get("tags", ()),
    )


def _extra_of(exercise_id: str) -> float:
    exercise = exercises.find(exercise_id)
    return exercise.points if exercise.optional else 0.0


def _exercise_of(grade_id: str) -> str | None:
    """The declared exercise that a check cell stands for; None for a plain test cell."""
    exercise_id = grade_id.removesuffix(CHECK_SUFFIX)
    if exercise_id == grade_id or exercise_id not in exercises.ids_of_lab(exercise_id[:2]):
        return None
    return exercise_id
