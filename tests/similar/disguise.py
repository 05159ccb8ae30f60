"""An answer as somebody hands it in who copied it and hopes that nobody sees: other names, order and comments."""

from __future__ import annotations

import ast
from random import Random


def disguised(source: str, seed: int = 1) -> str:
    """Names of its own renamed, functions in another order, comments and docstrings replaced, laid out anew."""
    tree, random = ast.parse(source), Random(seed)
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = {name: f"value_{n}_{random.randrange(100)}" for n, name in enumerate(sorted(own))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    rest = [node for node in tree.body if node not in functions]
    random.shuffle(functions)
    tree.body = [*rest, *functions]
    return f"# my own work\n{ast.unparse(ast.fix_missing_locations(tree))}\n"
