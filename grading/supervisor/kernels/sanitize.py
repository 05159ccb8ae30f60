"""Clear one function of a notebook for a rerun: its copy with nothing in it that could leave Triton's language.

What is allowed stands in `allowed`. What global names mean, and what else they bring in, is the module's to say.
"""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import Protocol

from grading.supervisor.kernels.allowed import CHECKS, EXPRESSIONS, HANDED, LOOPS, METHODS, MODULES, PRINTS, STATEMENTS

JIT = "rerun_jit"
"""What `triton.jit` is called in the module."""
_CONSTEXPR = {"triton.language.constexpr", "triton.language.core.constexpr"}


class NotRerunnable(Exception):
    """The answer's kernels cannot be run from their text alone; the text says why, to the student.

    Of what the student's process sent while it had hidden cases nothing may stand in there. problem: the same for the
    instructor, where there is more to say.
    """

    def __init__(self, hint: str, problem: str | None = None) -> None:
        super().__init__(hint)
        self.problem = problem or hint


class Module(Protocol):
    """What a function is cleared for; see `extract`."""

    def name(self, name: str, who: str) -> str: ...
    def dotted(self, node: ast.AST) -> str | None: ...
    def member(self, dotted: str, who: str) -> None: ...
    def constant(self, value: ast.expr, who: str) -> str: ...
    def count(self, tree: ast.AST) -> None: ...
    def jit_options(self, definition: ast.FunctionDef) -> list[ast.keyword]: ...


class SafeKernel:
    """One function's check and its copy, with its helpers called as the module calls them."""

    def __init__(self, module: Module, definition: ast.FunctionDef) -> None:
        self._module = module
        self._who = f"Kernel `{definition.name}`"
        module.count(definition)
        self._definition = deepcopy(definition)
        self._options = module.jit_options(definition)

    def rewritten(self, name: str) -> ast.FunctionDef:
        function, module = self._definition, self._module
        arguments = function.args
        if arguments.vararg or arguments.kwarg:
            raise self._refusal("takes * or ** arguments")
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for one in parameters:
            one.annotation = self._constexpr(one.annotation)
        for value in (*arguments.defaults, *arguments.kw_defaults):
            if value is not None:
                module.constant(value, f"A default of kernel `{function.name}`")
        local = {one.arg for one in parameters}
        local |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        function.body = [_Silent(module).visit(statement) for statement in function.body]
        for statement in function.body:
            self._check(statement)
        renaming = Renaming(module, self._who, frozenset(local))
        function.body = [renaming.visit(statement) for statement in function.body]
        function.args = Frozen().visit(Renaming(module, self._who, frozenset()).visit(arguments))
        function.name, function.returns = name, None
        jit: ast.expr = ast.Name(JIT, ast.Load())
        function.decorator_list = [ast.Call(jit, [], self._options) if self._options else jit]
        return ast.fix_missing_locations(function)

    def _constexpr(self, annotation: ast.expr | None) -> ast.expr | None:
        """The annotation where it says something to Triton."""
        if annotation is None or (isinstance(annotation, ast.Constant) and annotation.value == "constexpr"):
            return annotation
        return annotation if self._module.dotted(annotation) in _CONSTEXPR else None

    def _check(self, tree: ast.stmt) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt):
                if not isinstance(node, STATEMENTS):
                    raise self._refusal(f"has a `{type(node).__name__.lower()}` statement")
            elif not isinstance(node, EXPRESSIONS):
                raise self._refusal(f"has a form of Python that Triton does not have ({type(node).__name__})")
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                raise self._refusal("assigns to a part of something")
            if isinstance(node, ast.AnnAssign):
                node.annotation = self._constexpr(node.annotation) or ast.Constant("float")
            if isinstance(node, ast.keyword) and node.arg is None:
                raise self._refusal("passes ** arguments")
            if isinstance(node, ast.keyword) and node.arg in HANDED:
                raise self._refusal(f"passes an argument `{node.arg}`")
            if isinstance(node, ast.For) and not self._is_range(node.iter):
                raise self._refusal("has a `for` over something else than a range")
            if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name | ast.Attribute):
                raise self._refusal("calls what has no name")

    def _is_range(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call):
            return False
        return (isinstance(node.func, ast.Name) and node.func.id in LOOPS) or self._module.dotted(node.func) in LOOPS

    def _refusal(self, what: str) -> NotRerunnable:
        return NotRerunnable(f"{self._who} {what}, and cannot be run from its text alone. Take that out.")


class _Silent(ast.NodeTransformer):
    """Leaves out what a kernel prints and asserts, of which nothing comes back."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Call):
            function = node.value.func
            name = function.id if isinstance(function, ast.Name) else None
            if name in PRINTS or self._module.dotted(function) in PRINTS | CHECKS:
                return ast.copy_location(ast.Pass(), node)
        return node


class Frozen(ast.NodeTransformer):
    """Tuples for lists: in the interpreter a list that outlives a program would carry what one loaded to the next."""

    def visit_List(self, node: ast.List) -> ast.AST:
        return self.generic_visit(ast.copy_location(ast.Tuple(node.elts, node.ctx), node))


class Renaming(ast.NodeTransformer):
    """Follows every name and attribute; refuses those that lead out, and calls helpers as the module does."""

    def __init__(self, module: Module, who: str, local: frozenset[str]) -> None:
        self._module, self._who, self._local = module, who, local

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        dotted = None if self._is_local(node) else self._module.dotted(node)
        if dotted is not None:
            self._module.member(dotted, self._who)
            if dotted in MODULES:
                raise NotRerunnable(f"{self._who} hands a module about. Name what it needs of it.")
            base = node
            while isinstance(base.value, ast.Attribute):
                base = base.value
            self._module.name(base.value.id, self._who)
            return node
        if node.attr not in METHODS:
            raise NotRerunnable(f"{self._who} uses `.{node.attr}`, which is no operation of Triton's.")
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id not in self._local:
            if self._module.dotted(node) in MODULES:
                raise NotRerunnable(f"{self._who} hands a module about. Name what it needs of it.")
            node.id = self._module.name(node.id, self._who)
        return node

    def _is_local(self, node: ast.AST) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._local
