"""Questions about a cell's syntax tree: does it parse, what does it define, would its stub raise.

Nothing is executed. "Would raise" is meant for stubs as authors write them: it is not a proof.
"""

from __future__ import annotations

import ast
import warnings

from IPython.core.inputtransformer2 import TransformerManager

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
SWALLOWS = {None, "Exception", "BaseException", "RuntimeError", "NotImplementedError"}


def parse(source: str) -> ast.Module:
    """The tree of a code cell, IPython's magics allowed; of a `%%writefile` cell, that file's. Raises SyntaxError."""
    if source.startswith("%%writefile "):
        source = "\n" + source.partition("\n")[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return ast.parse(source)
        except SyntaxError:
            transformed = TransformerManager().transform_cell(source)
            if transformed.rstrip("\n") == source.rstrip("\n"):
                raise
            return ast.parse(transformed)


def definition(tree: ast.Module, name: str) -> Definition | None:
    """The last function or class of this name at the top of the cell."""
    found = [node for node in tree.body if isinstance(node, Definition) and node.name == name]
    return found[-1] if found else None


def defines(tree: ast.Module, name: str) -> bool:
    """Whether the cell binds this name outside of functions and classes."""
    return any(binds(statement, name) for statement in tree.body)


def binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, Definition):
        return node.name == name
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Store) and node.id == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == name
    return any(binds(child, name) for child in ast.iter_child_nodes(node))


def raises_anywhere(tree: ast.AST) -> bool:
    """Whether the stub's raise stands somewhere in it."""
    return any(isinstance(node, ast.Raise) and is_stub(node) for node in ast.walk(tree))


def raises_when_used(node: Definition) -> bool:
    """A function whose body raises, or a class of which a method does."""
    if isinstance(node, ast.ClassDef):
        return any(raises_when_used(item) for item in node.body if isinstance(item, Definition))
    return raises(node.body, inner=True)


def raises(body: list[ast.stmt], *, inner: bool = False) -> bool:
    """Whether these statements reach the stub's raise before they return.

    inner: an inner function that raises counts too, as in a decorator, whose inner function is the answer.
    """
    for statement in body:
        if isinstance(statement, ast.Return):
            return False
        if isinstance(statement, ast.Raise):
            return is_stub(statement)
        if isinstance(statement, Definition):
            if inner and raises_when_used(statement):
                return True
        elif reaches(statement, inner):
            return True
    return False


def reaches(statement: ast.stmt, inner: bool) -> bool:
    """The same for one compound statement; a loop is taken to run at least once."""
    match statement:
        case ast.With() | ast.AsyncWith() | ast.For() | ast.AsyncFor() | ast.While():
            return raises(statement.body, inner=inner)
        case ast.If():
            return raises(statement.body, inner=inner) and raises(statement.orelse, inner=inner)
        case ast.Try():
            swallowed = any(caught(handler.type) & SWALLOWS for handler in statement.handlers)
            return raises(statement.body, inner=inner) and not swallowed
    return False


def caught(handled: ast.expr | None) -> set[str | None]:
    """The names in an except clause; {None} for a bare one."""
    if isinstance(handled, ast.Tuple):
        return {ast.unparse(item) for item in handled.elts}
    return {None if handled is None else ast.unparse(handled)}


def is_stub(statement: ast.Raise) -> bool:
    raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
