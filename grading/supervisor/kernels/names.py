"""What the names of a notebook are bound to when it has run to some cell: functions, imports, values, by their text.

The last binding counts, as in the notebook. Nothing is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from IPython.core.inputtransformer2 import TransformerManager

from grading.worker.protocol.steps import RunCode, Step, exercise_of
from labkit.meters.launch_log import digest_of_node


@dataclass
class Names:
    """Of the cells' top level: functions by name, modules and their members by alias (dotted), values' expressions.

    definitions: the functions of the text, at whatever level, by name and digest.
    """

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    definitions: dict[tuple[str, str], ast.FunctionDef] = field(default_factory=dict)

    def bind(self, name: str, kind: str, to: object) -> None:
        for other in ("functions", "imports", "values"):
            getattr(self, other).pop(name, None)
        getattr(self, kind)[name] = to


_UNKNOWN = ast.Await(ast.Constant(None))
"""Stands for a value that the text does not show; no constant is made of it."""


def cells_before(steps: Sequence[Step], exercise_id: str) -> list[str]:
    """The code that has run when an exercise is served, of a job's steps."""
    cells = []
    for step in steps:
        if exercise_of(step) == exercise_id:
            break
        if isinstance(step, RunCode):
            cells.append(step.source)
    return cells


def names_of(cells: Sequence[str]) -> Names:
    """The names that these cells bind, in the order in which they run. A cell that cannot be read binds none."""
    names = Names()
    for source in cells:
        try:
            tree = ast.parse(TransformerManager().transform_cell(source))
            found = {(n.name, digest_of_node(n)): n for n in _innermost(tree)}
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        names.definitions |= found
        for statement in _statements(tree.body):
            _bind(names, statement)
    return names


def _innermost(tree: ast.AST) -> list[ast.FunctionDef]:
    """The functions that hold no others, and those that hold such ones alone. Of many around one another, each digest
    would be of the whole text again."""
    nodes = list(ast.walk(tree))
    heights: dict[int, int] = {}
    # What stands inside of a node comes after it.
    for node in reversed(nodes):
        below = max((heights[id(child)] for child in ast.iter_child_nodes(node)), default=0)
        heights[id(node)] = below + isinstance(node, ast.FunctionDef)
    return [node for node in nodes if isinstance(node, ast.FunctionDef) and heights[id(node)] <= 2]


def _bind(names: Names, statement: ast.stmt) -> None:
    if isinstance(statement, ast.FunctionDef):
        names.bind(statement.name, "functions", statement)
    elif isinstance(statement, ast.Import):
        for item in statement.names:
            # `import triton.language` binds `triton`.
            dotted = item.name if item.asname else item.name.split(".")[0]
            names.bind(item.asname or dotted, "imports", dotted)
    elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        for item in statement.names:
            names.bind(item.asname or item.name, "imports", f"{statement.module}.{item.name}")
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            for name, value in _parts(target, statement.value):
                names.bind(name, "values", value)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        names.bind(statement.target.id, "values", _UNKNOWN)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        names.bind(statement.target.id, "values", statement.value)


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment binds, each with what it is given; `a, b = 1, 2` name by name."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        fits = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for n, part in enumerate(target.elts):
            yield from _parts(part, value.elts[n] if fits else _UNKNOWN)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a cell runs, those inside `if`, `try`, `with` and loops too."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, name, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _statements(handler.body)
