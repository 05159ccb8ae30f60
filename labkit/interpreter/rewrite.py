"""Rewrite a kernel for interpreting without leaving Triton's names in the notebook, and with what the kernel captured.

The stock interpreter puts all that its module imports (`np`, `math`, ...) among the kernel's globals, so that a missing
import shows only on another machine, and loses the variables of a function that the kernel was defined in.
"""

from __future__ import annotations

import ast
from types import CellType, FunctionType, ModuleType

NEEDED = ("interpreter_semantic", "_InterpreterComparison")
"""What the rewritten code itself refers to."""


def patch(interpreter: ModuleType) -> None:
    """Replace the last step of the interpreter's rewriting."""
    rewriter = interpreter.FunctionRewriter
    stock = rewriter._compile_and_exec

    def _compile_and_exec(self, transformed_ast):
        names = self.fn.__globals__
        before = set(names)
        captured = dict(zip(self.fn.__code__.co_freevars, self.fn.__closure__ or ()))
        if captured:
            transformed_ast = _inside_a_function(transformed_ast, list(captured))
        rewritten = stock(self, transformed_ast)
        for name in set(names) - before - set(NEEDED):
            del names[name]
        return _with_cells(rewritten, captured) if captured else rewritten

    rewriter._compile_and_exec = _compile_and_exec


def _inside_a_function(tree: ast.Module, names: list[str]) -> ast.Module:
    """The kernel's definition in the body of a function of the same name, whose parameters are what it captured."""
    kernel = tree.body[0]
    outer = ast.parse(f"def {kernel.name}({', '.join(names)}):\n    return {kernel.name}")
    outer.body[0].body.insert(0, kernel)
    return ast.fix_missing_locations(outer)


def _with_cells(outer: FunctionType, captured: dict[str, CellType]) -> FunctionType:
    """The kernel that the outer function defines, tied to the cells that the original was tied to."""
    kernel = outer(*(_value(cell) for cell in captured.values()))
    cells = tuple(captured[name] for name in kernel.__code__.co_freevars)
    tied = FunctionType(kernel.__code__, kernel.__globals__, kernel.__name__, kernel.__defaults__, cells)
    tied.__annotations__, tied.__kwdefaults__ = kernel.__annotations__, kernel.__kwdefaults__
    return tied


def _value(cell: CellType) -> object:
    """None for a variable that has no value yet; the kernel's own cell gets it later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
