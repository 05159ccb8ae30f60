"""What students are left with: cells that parse, stubs that raise, and no solution.

Only syntax trees and lines are looked at; nothing is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise

import nbformat

from grading.build import markers, syntax
from grading.build.lint_cells import is_code
from grading.build.source import Cell, Problem, Source
from grading.build.stub import CUDA_STUB
from grading.build.student import student_cell
from labkit.spec import Answer, Exercise

TELLING = 12
"""Shorter lines (`return out`) say nothing about a solution."""


def stub_problems(source: Source, exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """Everything wrong with the code that students get."""
    for cell in source.cells:
        if cell.kind == "code":
            yield from stub_of(source, cell, answers_in(cell, exercises))
    yield from left_behind(source)


def answers_in(cell: Cell, exercises: Mapping[str, Exercise]) -> list[Answer]:
    """The declared answers that this cell holds."""
    everything = ((exercise, answer) for exercise in exercises.values() for answer in exercise.answers)
    return [answer for exercise, answer in everything if (answer.cell or exercise.id) == cell.grade_id]


def stub_of(source: Source, cell: Cell, answers: list[Answer]) -> Iterator[Problem]:
    """The cell parses, solved and as a stub; solved it defines its answers, and as a stub each of them raises."""
    try:
        solved = syntax.parse(cell.source)
    except SyntaxError as error:
        yield source.problem(cell, f"does not parse: {error.msg}", (error.lineno or 1) - 1)
        return
    found = markers.find(cell.lines, markers.SOLUTION)
    if not cell.is_solution or not found.regions or found.faults:
        return
    begin = found.regions[0][0]
    given = student_cell(nbformat.v4.new_code_cell(cell.source, metadata=nbgrader_of(cell))).source
    is_cuda = CUDA_STUB in given
    try:
        stub = syntax.parse(given)
    except SyntaxError as error:
        yield source.problem(cell, f"the student's version of this cell does not parse: {error.msg}", begin)
        return
    if not syntax.raises_anywhere(stub) and not is_cuda:
        yield source.problem(cell, "the student's version of this cell does not raise NotImplementedError", begin)
        return
    for answer in answers:
        reason = stub_fault(solved, stub, answer)
        if reason:
            yield source.problem(cell, reason, begin)


def nbgrader_of(cell: Cell) -> dict:
    return {"nbgrader": dict(cell.nbgrader)}


def stub_fault(solved: ast.Module, stub: ast.Module, answer: Answer) -> str | None:
    """What is wrong with the stub of one answer."""
    if answer.kind == "text":
        return None
    if not syntax.defines(solved, answer.name):
        return f"the answer {answer.name} is not defined in this cell"
    if syntax.raises(stub.body):
        return None
    if answer.kind == "value":
        return f"the stub of the value {answer.name} would not raise when the cell runs"
    node = syntax.definition(stub, answer.name)
    if node is None or not syntax.raises_when_used(node):
        return f"the stub of {answer.name} would not raise NotImplementedError"
    return None


def left_behind(source: Source) -> Iterator[Problem]:
    """No region of a solution is repeated in code that students see, nor any two of its lines in a row."""
    seen = [(cell, telling(given)) for cell, given in given_code(source)]
    for solution_cell in source.cells:
        found = markers.find(solution_cell.lines, markers.SOLUTION)
        if found.faults or solution_cell.kind != "code":
            continue
        for region in markers.inside(solution_cell.lines, found):
            runs = runs_of([line for _, line in telling(region)])
            for cell, lines in seen:
                yield from repeated(source, solution_cell, cell, lines, runs)


def repeated(
    source: Source, solution_cell: Cell, cell: Cell, lines: list[tuple[int, str]], runs: set[tuple[str, ...]]
) -> Iterator[Problem]:
    """The first place of a cell that shows a run of a solution's lines."""
    for length in (1, 2):
        for start in range(len(lines) - length + 1):
            if tuple(line for _, line in lines[start : start + length]) in runs:
                owner = solution_cell.grade_id or f"line {solution_cell.line}"
                reason = f"a solution left in a student's cell: this repeats the solution of {owner}"
                yield source.problem(cell, reason, lines[start][0])
                return


def runs_of(lines: list[str]) -> set[tuple[str, ...]]:
    """What gives a solution away: its only line, or any two in a row."""
    return {tuple(lines)} if len(lines) == 1 else set(pairwise(lines))


def telling(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines that say something: code, not imports, longer than a few letters; indentation aside."""
    stripped = [(i, line.strip()) for i, line in lines]
    return [
        (i, line)
        for i, line in stripped
        if is_code(line) and len(line) > TELLING and not line.startswith(("import ", "from "))
    ]


def given_code(source: Source) -> Iterator[tuple[Cell, list[tuple[int, str]]]]:
    """The code that students see, cell by cell, with its lines' numbers."""
    for cell in source.cells:
        if cell.kind == "code":
            yield cell, markers.outside(cell.lines, markers.find(cell.lines, markers.SOLUTION))
