"""What must hold of each cell by itself: its metadata, its id, its markers.

What a cell owes to an exercise's declaration is judged in `lint_exercises`, its stub in `lint_stubs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import nbformat
from nbgrader.nbgraderformat import MetadataValidator

from grading.build import markers
from grading.build.directives import STOP, TIME, directives, exercise_id, misplaced
from grading.build.source import Cell, Problem, Source
from labkit.exercises import ID
from labkit.spec import Exercise

NUMBERED = re.compile(r"\d\d-c\d{3}")
LONGEST_ID = 64
"""nbformat's limit for the id of a cell."""


def cell_problems(source: Source, exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """Everything wrong with single cells."""
    yield from ids(source)
    for cell in source.cells:
        yield from metadata(source, cell)
        yield from marker_lines(source, cell)
        yield from solution_is_marked(source, cell)
        if cell.kind == "markdown":
            yield from directive_lines(source, cell, exercises)


def metadata(source: Source, cell: Cell) -> Iterator[Problem]:
    """nbgrader must accept the cell's metadata."""
    unread = cell.metadata.get("incorrectly_encoded_metadata")
    if unread is not None:
        yield source.problem(cell, f"metadata that cannot be read as key=JSON: {unread}")
    if "nbgrader" not in cell.metadata:
        return
    kept = {"nbgrader": cell.metadata["nbgrader"]}
    node = nbformat.from_dict({"cell_type": cell.kind, "source": cell.source, "metadata": kept})
    try:
        MetadataValidator().validate_cell(node)
    except Exception as error:  # jsonschema's, nbgrader's own, and whatever a field of the wrong type leads to
        yield source.problem(cell, f"nbgrader refuses the metadata: {str(error).splitlines()[0]}")


def ids(source: Source) -> Iterator[Problem]:
    """Ids are NN-slug of this lab, and each is used once."""
    first: dict[str, Cell] = {}
    for cell in source.cells:
        found = cell.grade_id
        if found is None:
            continue
        match = ID.fullmatch(found)
        if match is None or len(found) > LONGEST_ID:
            yield source.problem(cell, f'malformed id "{found}": it must be NN-slug, as in {source.lab}-decode')
        elif match["lab"] != source.lab:
            yield source.problem(cell, f'the id "{found}" is not of this lab: it must begin with {source.lab}-')
        elif NUMBERED.fullmatch(found):
            yield source.problem(cell, f'the id "{found}" is kept for cells that have none of their own')
        if found in first:
            yield source.problem(cell, f'duplicate id "{found}": line {first[found].line} has it too')
        first.setdefault(found, cell)


def marker_lines(source: Source, cell: Cell) -> Iterator[Problem]:
    """Markers come in pairs, and only where nbgrader will act on them."""
    solution = markers.find(cell.lines, markers.SOLUTION)
    scheme = markers.find(cell.lines, markers.MARK_SCHEME)
    hidden = markers.find(cell.lines, markers.HIDDEN_TESTS)
    for found in (solution, scheme, hidden):
        for offset, fault in found.faults:
            yield source.problem(cell, fault, offset)
    if solution and not cell.is_solution:
        reason = "a solution marker outside a solution cell (its metadata must say solution: true)"
        yield source.problem(cell, reason, first_line(solution))
    if scheme and not cell.is_task:
        reason = "a mark scheme outside a task cell (its metadata must say task: true)"
        yield source.problem(cell, reason, first_line(scheme))
    if hidden:
        reason = "hidden tests in a cell reach students through tracebacks; hidden cases belong to grading/hidden"
        yield source.problem(cell, reason, first_line(hidden))
    if cell.kind == "code":
        for offset, line in enumerate(cell.lines):
            if re.match(r"\s*#.*AUTOTEST", line):
                yield source.problem(cell, "AUTOTEST is not supported: checks are declared exercises", offset)


def first_line(found: markers.Markers) -> int:
    return min(line for line, _ in found.regions + found.faults)


def solution_is_marked(source: Source, cell: Cell) -> Iterator[Problem]:
    """A code solution stands between markers. (A manual answer in text may be all solution: nbgrader clears it.)"""
    if not (cell.is_solution and cell.kind == "code"):
        return
    found = markers.find(cell.lines, markers.SOLUTION)
    if not found:
        reason = "a solution cell without markers: put the solution between ### BEGIN SOLUTION and ### END SOLUTION"
        yield source.problem(cell, reason)
    for (begin, _), region in zip(found.regions, markers.inside(cell.lines, found)):
        if not any(is_code(line) for _, line in region):
            reason = "no code between the markers: a solution outside of them would be left in the student's cell"
            yield source.problem(cell, reason, begin)


def is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def directive_lines(source: Source, cell: Cell, exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """Every [[directive]] is known and stands alone on its line."""
    for offset, text in directives(cell.source):
        found = exercise_id(text)
        if found is None and text not in (TIME, STOP):
            reason = f"unknown directive [[{text}]]; known are [[exercise ID]], [[{TIME}]] and [[{STOP}]]"
            yield source.problem(cell, reason, offset)
        elif found is not None and found not in exercises:
            yield source.problem(cell, f"[[{text}]]: {undeclared(found, source.lab, exercises)}", offset)
    for offset in misplaced(cell.source):
        yield source.problem(cell, "[[exercise ID]] must stand alone on its line", offset)


def undeclared(exercise: str, lab: str, exercises: Mapping[str, Exercise]) -> str:
    """The reason for an id that no declaration has."""
    known = ", ".join(exercises) or "nothing"
    order = f"labkit/exercises/lab{lab}/__init__.py"
    return (
        f'no exercise "{exercise}" is declared in labkit.exercises.lab{lab}, which declares {known}; '
        f"is its slug in ORDER of {order}?"
    )
