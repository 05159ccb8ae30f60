"""What must hold of a lab's predictions: `guesses.take(...)` before the measurement, `guesses.settle(...)` after it.

The student writes into the cell that takes a prediction, so it is unlocked, ungraded, and has an id by which an update
of the lab finds it again. What is asked, and whether it is worth asking, is not judged here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grading.build.source import Cell, Problem, Source
from grading.build.syntax import parse

MARK = "-predict-"
METHODS = ("take", "settle", "mark", "score")


@dataclass(frozen=True)
class Call:
    """One call of a method of the lab's predictions: `guesses.take("peak", None)` in the nth cell."""

    method: str
    name: str | None
    cell: Cell
    place: int
    node: ast.Call

    @property
    def line(self) -> int:
        return self.node.lineno - 1


def prediction_problems(source: Source) -> Iterator[Problem]:
    """Everything wrong with predictions and the cells that take them."""
    calls = [call for place, cell in enumerate(source.cells) for call in calls_in(cell, place)]
    of = {method: {call.name: call for call in reversed(calls) if call.method == method} for method in METHODS}
    takes = [call for call in calls if call.method == "take"]
    for cell in {id(call.cell): call.cell for call in takes}.values():
        yield from prediction_cell(source, cell)
    for call in takes:
        guess = call.node.args[1] if len(call.node.args) > 1 else None
        if not (isinstance(guess, ast.Constant) and guess.value is None):
            yield source.problem(
                call.cell, f'the prediction "{call.name}" must be None: it is the student\'s', call.line
            )
        if call is not of["take"][call.name]:
            yield source.problem(call.cell, f'the prediction "{call.name}" is asked for a second time', call.line)
        if call.name not in of["settle"]:
            yield source.problem(call.cell, f'the prediction "{call.name}" is never settled', call.line)
    for call in calls:
        taken = of["take"].get(call.name)
        if call.method in ("settle", "mark") and taken is None:
            yield source.problem(call.cell, f'nothing takes the prediction "{call.name}"', call.line)
        elif call.method == "settle" and taken.place >= call.place:
            yield source.problem(call.cell, f'"{call.name}" is settled before it is predicted', call.line)
    if takes and not of["score"]:
        yield source.problem(
            takes[0].cell, "the predictions are never shown together: end the lab with guesses.score()"
        )


def prediction_cell(source: Source, cell: Cell) -> Iterator[Problem]:
    """Unlocked, ungraded, no solution, found again by its id."""
    wanted = f"{source.lab}{MARK}"
    flags = [flag for flag in ("grade", "locked", "solution", "task") if cell.nbgrader.get(flag)]
    if cell.grade_id is None or not cell.grade_id.startswith(wanted):
        yield source.problem(cell, f"a cell that takes a prediction needs an id that begins with {wanted}")
    for flag in flags:
        yield source.problem(cell, f"a cell that takes a prediction must say {flag}: false")


def calls_in(cell: Cell, place: int) -> Iterator[Call]:
    """The calls of the lab's object `guesses` in one cell."""
    if cell.kind != "code":
        return
    try:
        tree = parse(cell.source)
    except SyntaxError:
        return  # said by lint_stubs
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        held = node.func.value
        if isinstance(held, ast.Name) and held.id == "guesses" and node.func.attr in METHODS:
            strings = (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
            yield Call(node.func.attr, next(strings, None), cell, place, node)
