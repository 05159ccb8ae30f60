"""What must hold between an exercise's declaration and its cells: directive, hints, solution cells, check cell, order.

The declaration is taken as given, whether it makes sense is not asked here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise

from grading.build.directives import directives, exercise_id
from grading.build.lint_cells import undeclared
from grading.build.source import Cell, Problem, Source
from grading.build.syntax import parse
from labkit.spec import Exercise

CHECK = "-check"
HINTS = 3


def exercise_problems(source: Source, exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """Everything in which cells and declarations disagree."""
    places = {cell.grade_id: i for i, cell in reversed(list(enumerate(source.cells))) if cell.grade_id}
    shown = directive_places(source)
    for cell in source.cells:
        if cell.is_check and cell.grade_id:
            yield from check_is_declared(source, cell, exercises)
    for exercise in exercises.values():
        check = places.get(exercise.id + CHECK)
        if check is None and exercise.id not in places and exercise.id not in shown:
            yield Problem(source.file, 1, f"the declared exercise {exercise.id} has no cell here")
            continue
        yield from solution_cells(source, exercise, places, check)
        yield from directive_and_hints(source, exercise, shown.get(exercise.id, []), check)
        if check is None:
            here = source.cells[places.get(exercise.id, 0)]
            yield source.problem(here, f"the exercise {exercise.id} has no check cell {exercise.id}{CHECK}")
        else:
            yield from check_cell(source, source.cells[check], exercise)
    yield from order(source, [one for one in exercises if one + CHECK in places], places)


def order(source: Source, declared: list[str], places: Mapping[str, int]) -> Iterator[Problem]:
    """The check cells stand in the order in which their exercises are declared."""
    for first, second in pairwise(declared):
        if places[second + CHECK] < places[first + CHECK]:
            named = f"ORDER of labkit/exercises/lab{source.lab}/__init__.py"
            reason = f"{second} stands before {first} here, and behind it in {named}"
            yield source.problem(source.cells[places[second + CHECK]], reason)


def answer_cells(exercise: Exercise) -> list[str]:
    """The ids of the cells that hold the exercise's answers, its own first."""
    return sorted({answer.cell or exercise.id for answer in exercise.answers} or {exercise.id})


def check_is_declared(source: Source, cell: Cell, exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """A graded cell is named after a declared exercise."""
    named = cell.grade_id
    if named in exercises:
        yield source.problem(cell, f'the check cell of {named} must have the id "{named}{CHECK}"')
    elif not named.endswith(CHECK):
        reason = f'the graded cell "{named}" must have the id of its exercise with {CHECK} behind it'
        yield source.problem(cell, reason)
    elif named.removesuffix(CHECK) not in exercises:
        yield source.problem(cell, undeclared(named.removesuffix(CHECK), source.lab, exercises))


def solution_cells(
    source: Source, exercise: Exercise, places: Mapping[str, int], check: int | None
) -> Iterator[Problem]:
    """Each answer has its solution cell, before the check and without points."""
    where = source.cells[check if check is not None else places.get(exercise.id, 0)]
    for wanted in answer_cells(exercise):
        if wanted not in places:
            yield source.problem(where, f"the exercise {exercise.id} has no solution cell {wanted}")
            continue
        cell = source.cells[places[wanted]]
        if not cell.is_solution or cell.is_grade or cell.kind != "code":
            reason = "must be code with solution: true and grade: false (the points belong to the check cell)"
            yield source.problem(cell, f"the cell {wanted} {reason}")
        if check is not None and places[wanted] > check:
            yield source.problem(cell, f"the solution cell {wanted} comes after the check cell {exercise.id}{CHECK}")


def check_cell(source: Source, cell: Cell, exercise: Exercise) -> Iterator[Problem]:
    """The check cell is code, locked, worth the declared points, and calls check as declared."""
    if not cell.is_check or cell.kind != "code":
        yield source.problem(cell, f"the check cell {cell.grade_id} must be code with grade: true, solution: false")
    if not cell.nbgrader.get("locked"):
        yield source.problem(cell, f"the check cell {cell.grade_id} is not locked")
    points = cell.nbgrader.get("points")
    declared = 0 if exercise.optional else exercise.points
    if points != declared:
        extra = " (it is optional: its points are extra credit)" if exercise.optional else ""
        reason = f"{cell.grade_id} is worth {points} here, but {declared:g} in the declaration{extra}"
        yield source.problem(cell, reason)
    if cell.kind == "code":
        yield from check_call(source, cell, exercise)


def check_call(source: Source, cell: Cell, exercise: Exercise) -> Iterator[Problem]:
    """`check("<id>", <the answers, in the declared order>)`, once, as a statement of its own."""
    try:
        tree = parse(cell.source)
    except SyntaxError:
        return  # said by lint_stubs
    named = [answer.name if answer.kind != "text" else f"<{answer.name}>" for answer in exercise.answers]
    wanted = f"check({', '.join([quoted(exercise.id), *named])})"
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr) and is_check_call(node.value)]
    if len(calls) != 1:
        yield source.problem(cell, f"the check cell must call {wanted} once, as a statement of its own")
        return
    first, *given = calls[0].args or [None]
    called = isinstance(first, ast.Constant) and first.value == exercise.id and not calls[0].keywords
    agree = len(given) == len(exercise.answers) and all(
        answer.kind == "text" or ast.unparse(argument) == answer.name
        for answer, argument in zip(exercise.answers, given)
    )
    if not called or not agree:
        reason = f"the check cell calls {quotes(ast.unparse(calls[0]))}, but the declaration wants {wanted}"
        yield source.problem(cell, reason, calls[0].lineno - 1)


def is_check_call(node: ast.expr) -> bool:
    """check(...) or labkit.check(...)"""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (isinstance(called, ast.Name) and called.id == "check") or (
        isinstance(called, ast.Attribute) and called.attr == "check"
    )


def quoted(text: str) -> str:
    return f'"{text}"'


def quotes(code: str) -> str:
    """Code as the house writes it, with double quotes."""
    return code.replace("'", '"')


def directive_places(source: Source) -> dict[str, list[tuple[int, int]]]:
    """Per exercise id, where its directive stands: (cell, line within the cell)."""
    places: dict[str, list[tuple[int, int]]] = {}
    for i, cell in enumerate(source.cells):
        for offset, text in directives(cell.source) if cell.kind == "markdown" else ():
            found = exercise_id(text)
            if found is not None:
                places.setdefault(found, []).append((i, offset))
    return places


def directive_and_hints(
    source: Source, exercise: Exercise, shown: list[tuple[int, int]], check: int | None
) -> Iterator[Problem]:
    """One directive, and three folded hints between it and the check cell."""
    if check is None:
        return
    cell = source.cells[check]
    if not shown:
        where = "in a text cell before this check, above its hints"
        yield source.problem(cell, f"no line [[exercise {exercise.id}]] announces the exercise, {where}")
        return
    for i, offset in shown[1:]:
        yield source.problem(source.cells[i], f"[[exercise {exercise.id}]] stands here a second time", offset)
    start, offset = shown[0]
    if start > check:
        reason = f"[[exercise {exercise.id}]] comes after the exercise's check cell"
        yield source.problem(source.cells[start], reason, offset)
        return
    text = "\n".join(text_between(source.cells, start, offset, check))
    opened, closed = text.count("<details"), text.count("</details>")
    if opened < HINTS:
        reason = (
            f"{opened} folded hints (<details>) between [[exercise {exercise.id}]] and its check cell; "
            f"three are wanted: a nudge, the idea, nearly the answer"
        )
        yield source.problem(source.cells[start], reason, offset)
    if opened != closed:
        reason = f"{opened} <details> but {closed} </details> among the hints of {exercise.id}"
        yield source.problem(source.cells[start], reason, offset)


def text_between(cells: tuple[Cell, ...], start: int, offset: int, end: int) -> Iterator[str]:
    """The text from a line of one cell up to another cell."""
    yield from cells[start].lines[offset:]
    for cell in cells[start + 1 : end]:
        if cell.kind == "markdown":
            yield from cell.lines
