"""Which of the lab's own demonstration cells a submission needs: those that bind a name its other cells look up.

A demonstration calls the student's functions to show something, which costs time and, where an answer hangs, far
more. It is run for its names alone. Names are read from the text; a cell that cannot be read needs everything.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Sequence

_WORD = re.compile(r"[^\W\d]\w*")


def needed(demos: Sequence[tuple[str, str]], others: Sequence[str]) -> set[str]:
    """The ids of the demonstrations (id, source) that the other cells' sources need, directly or through others."""
    wanted = set().union(*map(looked_up, others)) if others else set()
    found: set[str] = set()
    while True:
        more = [(cell_id, source) for cell_id, source in demos if cell_id not in found and bound(source) & wanted]
        if not more:
            return found
        for cell_id, source in more:
            found.add(cell_id)
            wanted |= looked_up(source)


def looked_up(source: str) -> set[str]:
    """The global names that a cell reads; every word of it where it is no plain Python."""
    try:
        table = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(_WORD.findall(source))
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    waiting = list(table.get_children())
    while waiting:
        scope = waiting.pop()
        names |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()}
        waiting += scope.get_children()
    return names


def bound(source: str) -> set[str]:
    """The global names that a cell binds; every word of it where it is no plain Python."""
    try:
        tree = ast.parse(source)
        table = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(_WORD.findall(source))
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return set(_WORD.findall(source)) | {"*"}
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
