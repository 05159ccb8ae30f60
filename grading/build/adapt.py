"""A lab as one course wants it: without some of its exercises and questions, and with points of its own.

The source is read as it stands and changed cell by cell before it is built, so that the solved notebook, and all that
nbgrader and the grader make of it, agree. An exercise that is left out keeps a locked stub in the place of its answer:
later cells meet it as they meet an answer that is still blank. What other texts of the lab say of it stays.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import nbformat

from grading.build.adaptation import Adaptation
from grading.build.directives import STOP, counted, directives
from grading.build.lint_exercises import CHECK, answer_cells, directive_places, is_check_call
from grading.build.lint_pace import says
from grading.build.source import Cell, Source
from grading.build.stub import ClearSolutions, nbgrader_config
from grading.build.syntax import parse
from labkit.labs import Lab, rounded
from labkit.spec import Exercise


class BadAdaptation(Exception):
    """What a course asks of a lab and cannot have; the message holds every reason."""


@dataclass(frozen=True)
class Adapted:
    """A source, its exercises and its lab after an adaptation."""

    source: Source
    exercises: dict[str, Exercise]
    lab: Lab


def wrong_names(source: Source, exercises: Mapping[str, Exercise], wanted: Adaptation) -> list[str]:
    """What of `wanted`, which is about this lab alone, cannot be done, in sentences; empty where all of it can."""
    graded = [*exercises, *_questions(source)]
    problems = [
        f'lab {source.lab} has no exercise or question "{name}" (it has: {", ".join(graded)})'
        for name in sorted({*wanted.leave_out, *wanted.points} - set(graded))
    ]
    problems += [f"{name} is left out and has points" for name in sorted(wanted.leave_out & set(wanted.points))]
    problems += [
        f"{points:g} points for {name}: they must be above 0 (leave it out instead)"
        for name, points in wanted.points.items()
        if not (points > 0 and math.isfinite(points))
    ]
    core = [name for name in graded if name not in exercises or not exercises[name].optional]
    if core and wanted.leave_out.issuperset(core):
        problems.append(f"nothing with points is left of lab {source.lab}: leave the whole lab out instead")
    return problems


def adapt(source: Source, exercises: Mapping[str, Exercise], lab: Lab, wanted: Adaptation) -> Adapted:
    """The lab as wanted. The source has no problems, and neither has `wanted`: see `wrong_names`.

    An optional exercise that is given points becomes one of the core.
    """
    kept = {
        name: replace(one, points=wanted.points[name], optional=False) if name in wanted.points else one
        for name, one in exercises.items()
        if name not in wanted.leave_out
    }
    changed = replace(source, cells=tuple(_cells(source, exercises, kept, wanted)))
    changed = replace(changed, cells=tuple(_without_idle_stops(changed, kept)))
    return Adapted(changed, kept, _shorter(lab, exercises, kept))


def _cells(
    source: Source, exercises: Mapping[str, Exercise], kept: Mapping[str, Exercise], wanted: Adaptation
) -> Iterator[Cell]:
    gone = [exercise for name, exercise in exercises.items() if name in wanted.leave_out]
    still_asked = {cell for exercise in kept.values() for cell in answer_cells(exercise)}
    stubs = {cell for exercise in gone for cell in answer_cells(exercise)} - still_asked
    announced, inside = _regions(source, gone)
    questions = _questions(source)
    for place, cell in enumerate(source.cells):
        name = (cell.grade_id or "").removesuffix(CHECK)
        if place in announced:
            exercise, offset = announced[place]
            yield replace(cell, source="\n".join([*cell.lines[:offset], _not_asked(exercise)]).strip("\n"))
        elif cell.grade_id in stubs:
            yield _as_stub(cell)
        elif (cell.is_check and name in wanted.leave_out) or (place in inside and cell.kind == "markdown"):
            continue
        elif cell.grade_id in questions and cell.grade_id in wanted.leave_out:
            yield Cell(cell.line, "markdown", "**Not part of this course:** this question is not collected or graded.")
        elif cell.is_check and name in wanted.points:
            call = _with_arguments(cell.source, is_check_call, f"points={wanted.points[name]:g}")
            yield _worth(replace(cell, source=call), wanted.points[name])
        elif cell.grade_id in questions and cell.grade_id in wanted.points:
            points = wanted.points[cell.grade_id]
            yield Cell(cell.line, "markdown", f"**In this course** this question gives {counted(points, 'point')}.")
            yield _worth(cell, points)
        elif cell.kind == "code":
            yield replace(cell, source=_with_arguments(cell.source, _is_progress, *_for_progress(wanted, exercises)))
        else:
            yield cell


def _regions(source: Source, gone: list[Exercise]) -> tuple[dict[int, tuple[Exercise, int]], set[int]]:
    """Where each of them is announced (by cell: which, and the line), and the cells from there to its check."""
    shown = directive_places(source)
    checks = {cell.grade_id: place for place, cell in enumerate(source.cells) if cell.is_check}
    announced, inside = {}, set()
    for exercise in gone:
        ((place, offset),) = shown[exercise.id]
        announced[place] = (exercise, offset)
        inside |= set(range(place + 1, checks[exercise.id + CHECK]))
    return announced, inside


def _not_asked(exercise: Exercise) -> str:
    return (
        f"**Exercise {exercise.id}** is not part of this course. Cells below that need its answer are left out, and "
        "say so."
    )


def _as_stub(cell: Cell) -> Cell:
    """A locked cell with what students are given, and nothing to write."""
    metadata = {"nbgrader": dict(cell.nbgrader)}
    node = nbformat.from_dict({"cell_type": cell.kind, "source": cell.source, "metadata": metadata})
    node, _ = ClearSolutions(config=nbgrader_config()).preprocess_cell(node, {"language": "python"}, 0)
    flags = {**cell.nbgrader, "solution": False, "locked": True}
    return replace(cell, source=node.source, metadata={**cell.metadata, "nbgrader": flags})


def _worth(cell: Cell, points: float) -> Cell:
    whole = int(points) if float(points).is_integer() else points
    return replace(cell, metadata={**cell.metadata, "nbgrader": {**cell.nbgrader, "points": whole}})


def _questions(source: Source) -> list[str]:
    """The ids of the cells whose points a person gives."""
    asked = (cell for cell in source.cells if cell.is_task or (cell.is_grade and cell.is_solution))
    return [cell.grade_id for cell in asked if cell.grade_id]


def _for_progress(wanted: Adaptation, exercises: Mapping[str, Exercise]) -> list[str]:
    left_out = [name for name in exercises if name in wanted.leave_out]
    worth = ", ".join(f'"{name}": {points:g}' for name, points in wanted.points.items() if name in exercises)
    names = ", ".join(f'"{name}"' for name in left_out)
    return [*([f"points={{{worth}}}"] if worth else []), *([f"left_out=[{names}]"] if left_out else [])]


def _is_progress(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "progress"


def _with_arguments(text: str, is_it: Callable[[ast.expr], bool], *arguments: str) -> str:
    """The cell with these arguments behind those of its call; as it is where it has no such call."""
    if not arguments:
        return text
    try:
        calls = [node.value for node in parse(text).body if isinstance(node, ast.Expr) and is_it(node.value)]
    except SyntaxError:
        return text
    lines = text.split("\n")
    for call in calls[:1]:
        row = call.end_lineno - 1
        end = len(lines[row].encode()[: call.end_col_offset - 1].decode())
        before = "\n".join([*lines[:row], lines[row][:end]]).rstrip().removesuffix(",")
        return f"{before}, {', '.join(arguments)}" + "\n".join([lines[row][end:], *lines[row + 1 :]])
    return text


def _without_idle_stops(source: Source, kept: Mapping[str, Exercise]) -> Iterator[Cell]:
    """The cells but those whose [[stop]] no longer stands between two core exercises."""
    core = {name + CHECK for name, exercise in kept.items() if not exercise.optional}
    checks = [place for place, cell in enumerate(source.cells) if cell.grade_id in core]
    for place, cell in enumerate(source.cells):
        between = bool(checks) and checks[0] < place < checks[-1]
        if between or cell.kind != "markdown" or not says(cell.source, STOP):
            yield cell
            continue
        stops = {offset for offset, found in directives(cell.source) if found == STOP}
        text = "\n".join(line for offset, line in enumerate(cell.lines) if offset not in stops).strip("\n")
        if text:
            yield replace(cell, source=text)


def _shorter(lab: Lab, exercises: Mapping[str, Exercise], kept: Mapping[str, Exercise]) -> Lab:
    """The lab's minutes in proportion to those of the exercises that stay."""

    def of(all_of_them: Mapping[str, Exercise], optional: bool) -> float:
        return sum(one.minutes for one in all_of_them.values() if one.optional is optional)

    def share(minutes: int, optional: bool) -> int:
        before, after = of(exercises, optional), of(kept, optional)
        return rounded(minutes * after / before) if minutes and before and after else 0

    return replace(lab, minutes=share(lab.minutes, False), optional_minutes=share(lab.optional_minutes, True))
