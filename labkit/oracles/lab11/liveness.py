"""Lab 11: which lines of a small program matter, read from its text.

A line matters if a later one that matters reads what it makes, if it writes into a tensor, or if another graph may read
it. Each line is one operation; that values share memory is not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from labkit.exercises.lab11.programs import BREAK


@dataclass(frozen=True)
class Line:
    """One line: the names that it reads and the one that it makes, and whether it changes a tensor.

    Line("b[0] = 0", reads=frozenset({"b"}), makes="", writes=True)
    """

    text: str
    reads: frozenset[str]
    makes: str
    writes: bool


def graphs_of(lines: Sequence[str]) -> list[list[Line]]:
    """The lines of each graph, without the `return`."""
    graphs: list[list[Line]] = [[]]
    for text in lines:
        if text == BREAK:
            graphs.append([])
        elif not text.startswith("return"):
            graphs[-1].append(read(text))
    return graphs


def live_graphs(lines: Sequence[str], chains: bool = True) -> list[list[Line]]:
    """The lines that matter, graph by graph. chains: also without those that only a dead line reads."""
    graphs = graphs_of(lines)
    found = []
    for number, graph in enumerate(graphs):
        after = [line for later in graphs[number + 1 :] for line in later]
        needed = set().union(_returned(lines), *(line.reads for line in after))
        live: list[Line] = []
        for line in reversed(graph):
            if line.writes or line.makes in needed:
                live.append(line)
                needed |= line.reads
            elif not chains:
                needed |= line.reads
        found.append(live[::-1])
    return found


def read(text: str) -> Line:
    """One line, taken apart."""
    (statement,) = ast.parse(text).body
    loaded = frozenset(node.id for node in ast.walk(statement) if isinstance(node, ast.Name)) - {"torch", "F"}
    if isinstance(statement, ast.AugAssign):
        return Line(text, loaded, statement.target.id, writes=True)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        made = statement.targets[0].id
        return Line(text, frozenset(_read_by(statement.value)), made, writes=False)
    return Line(text, loaded, "", writes=True)


def _read_by(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} - {"torch", "F"}


def _returned(lines: Sequence[str]) -> set[str]:
    return _read_by(ast.parse(lines[-1].removeprefix("return ")).body[0].value)
