"""What must hold of a lab's predictions: `guesses.take(...)` before the measurement, `guesses.settle(...)` after it.

The student writes into the cell that takes a prediction, so it is unlocked, ungraded, and has an id by which an update
of the lab finds it again. What is asked, and whether it is worth asking, is not judged here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grading.build.source import Cell, Problem, Source
from grading.build.syntax import parse

MARK = "-predict-"
METHODS = ("take", "settle", "mark", "score")


@dataclass(frozen=True)
class Call:
    """One call of a method of the lab's `guesses` in the nth cell; `names` matches the predictions that it speaks of.

    In `guesses.settle(f"{name} sum", total)` these are all that end in " sum".
    """

    method: str
    names: re.Pattern[str] | None
    cell: Cell
    place: int
    node: ast.Call

    @property
    def line(self) -> int:
        return self.node.lineno - 1

    def argument(self, position: int) -> ast.expr | None:
        return self.node.args[position] if len(self.node.args) > position else None


def prediction_problems(source: Source) -> Iterator[Problem]:
    """Everything wrong with predictions and the cells that take them."""
    calls = [call for place, cell in enumerate(source.cells) for call in calls_in(cell, place)]
    of = {method: [call for call in calls if call.method == method] for method in METHODS}
    places: dict[str, int] = {}
    for call in of["take"]:
        name, guess = call.argument(0), call.argument(1)
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            yield source.problem(call.cell, "a prediction is taken under a name in quotes", call.line)
            continue
        if not (isinstance(guess, ast.Constant) and guess.value is None):
            reason = f"the prediction {text_of(call)} must be None: it is the student's"
            yield source.problem(call.cell, reason, call.line)
        if name.value in places:
            yield source.problem(call.cell, f"the prediction {text_of(call)} is asked for a second time", call.line)
        if not any(end.names and end.names.fullmatch(name.value) for end in of["settle"]):
            yield source.problem(call.cell, f"the prediction {text_of(call)} is never settled", call.line)
        places.setdefault(name.value, call.place)
    for call in of["settle"] + of["mark"]:
        asked = [place for name, place in places.items() if call.names and call.names.fullmatch(name)]
        if not asked:
            yield source.problem(call.cell, f"nothing takes the prediction {text_of(call)}", call.line)
        elif min(asked) >= call.place:
            yield source.problem(call.cell, f"{text_of(call)} is settled or marked before it is predicted", call.line)
    for cell in {id(call.cell): call.cell for call in of["take"]}.values():
        yield from prediction_cell(source, cell)
    if of["take"] and not of["score"]:
        reason = "the predictions are never shown together: end the lab with guesses.score()"
        yield source.problem(of["take"][0].cell, reason)


def prediction_cell(source: Source, cell: Cell) -> Iterator[Problem]:
    """Unlocked, ungraded, no solution, found again by its id."""
    wanted = f"{source.lab}{MARK}"
    if cell.grade_id is None or not cell.grade_id.startswith(wanted):
        yield source.problem(cell, f"a cell that takes a prediction needs an id that begins with {wanted}")
    for flag in ("grade", "locked", "solution", "task"):
        if cell.nbgrader.get(flag):
            yield source.problem(cell, f"a cell that takes a prediction must say {flag}: false")


def calls_in(cell: Cell, place: int) -> Iterator[Call]:
    """The calls of the lab's object `guesses` in one cell."""
    if cell.kind != "code":
        return
    try:
        tree = parse(cell.source)
    except SyntaxError:
        return  # reported by lint_stubs
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            held = node.func.value
            if isinstance(held, ast.Name) and held.id == "guesses":
                yield Call(node.func.attr, names_of(node), cell, place, node)


def names_of(call: ast.Call) -> re.Pattern[str] | None:
    """The names that the call's first text stands for: a text for itself, {…} in an f-string for anything."""
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            return re.compile(re.escape(argument.value))
        if isinstance(argument, ast.JoinedStr):
            parts = (re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in argument.values)
            return re.compile("".join(parts))
    return None


def text_of(call: Call) -> str:
    """The call's first text as it stands in the source; all arguments where it has none."""
    texts = (arg for arg in call.node.args if isinstance(arg, ast.JoinedStr | ast.Constant))
    first = next((arg for arg in texts if isinstance(arg, ast.JoinedStr) or isinstance(arg.value, str)), call.node)
    return ast.unparse(first).replace("'", '"')
