"""Take kernels out of a notebook's text: a module of theirs, with the helpers and constants they use and nothing else.

Every name, attribute and form of syntax is looked up in `allowed`; what is not there is refused with a word on what to
do. Nothing is run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass

from grading.supervisor.kernels.allowed import BUILTINS, CONSTANTS, MAX_POWER, MODULES, OF_MODULE
from grading.supervisor.kernels.names import Names
from grading.supervisor.kernels.sanitize import JIT, Frozen, NotRerunnable, Renaming, SafeKernel
from labkit.meters.launch_log import digest_of_node

Key = tuple[str, str]
"""A kernel: its name and its source's digest."""
_MAX_NODES = 20_000


@dataclass(frozen=True)
class Extracted:
    """source: of a module. kernels: by name and digest, what each is called there."""

    source: str
    kernels: dict[Key, str]


def extract(names: Names, wanted: Iterable[Key]) -> Extracted:
    """The module that holds these kernels. Raises NotRerunnable."""
    try:
        return _extracted(_Module(names), names, wanted)
    except (RecursionError, MemoryError):
        raise NotRerunnable(
            "The kernels' text is nested too deeply to be checked; write it in several steps."
        ) from None
    except ValueError:
        # Numbers of thousands of digits.
        raise NotRerunnable("The kernels' text holds a number that cannot be written down; round it.") from None


def _extracted(module: _Module, names: Names, wanted: Iterable[Key]) -> Extracted:
    for name, digest in wanted:
        definition = names.definitions.get((name, digest))
        if definition is None:
            raise NotRerunnable(
                "A kernel that it launches has no source in this notebook's cells. Define it there under @triton.jit, "
                "as text.",
                f"kernel `{name}` has no source in the notebook's cells",
            )
        module.add(definition)
    return Extracted(module.text(), module.called)


class _Module:
    """Definitions, constants and imports as they are found to be needed."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.called: dict[Key, str] = {}
        self._imports: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._functions: list[ast.FunctionDef] = []
        self._n_nodes = 0

    def text(self) -> str:
        imports = [f"from triton import jit as {JIT}"]
        for alias, dotted in self._imports.items():
            parent, _, leaf = dotted.rpartition(".")
            imports.append(f"from {parent} import {leaf} as {alias}" if parent else f"import {dotted} as {alias}")
        constants = [f"{name} = {value}" for name, value in self._constants.items()]
        return "\n".join([*imports, "", *constants, "", *map(ast.unparse, self._functions), ""])

    def add(self, definition: ast.FunctionDef) -> str:
        """Take a function in, with all that it uses; what it is called in this module."""
        key = (definition.name, digest_of_node(definition))
        if key not in self.called:
            taken = {*self.called.values()}
            name = definition.name if definition.name not in taken else f"{definition.name}_{len(taken)}"
            self.called[key] = name
            self._functions.append(SafeKernel(self, definition).rewritten(name))
        return self.called[key]

    def count(self, tree: ast.AST) -> None:
        self._n_nodes += sum(1 for _ in ast.walk(tree))
        if self._n_nodes > _MAX_NODES:
            raise NotRerunnable("The kernels' text is too long to be checked; shorten it.")

    def name(self, name: str, who: str) -> str:
        """What a global name is called in this module, once what it is bound to has been taken in."""
        if name in self._names.functions:
            definition = self._names.functions[name]
            if not self._is_jitted(definition):
                raise NotRerunnable(f"{who} calls `{name}`, which is not under @triton.jit: decorate it.")
            return self.add(definition)
        if name in self._names.values:
            if name not in self._constants:
                self._constants[name] = ""
                value = self._names.values[name]
                self._constants[name] = self.constant(value, f"`{name}`")
                # Those that it is made of were put behind it.
                self._constants[name] = self._constants.pop(name)
            elif not self._constants[name]:
                raise NotRerunnable(f"`{name}` is made of itself: give it a number, or hand it over as an argument.")
            return name
        if name in self._names.imports:
            self._import(name, who)
            return name
        if name in BUILTINS:
            return name
        raise NotRerunnable(
            f"{who} uses `{name}`, which is neither Triton's nor a constant or a @triton.jit function of "
            "this notebook's top level. Hand it over as an argument."
        )

    def dotted(self, node: ast.AST) -> str | None:
        """`tl.float32` as "triton.language.float32" where its base is imported."""
        if isinstance(node, ast.Name):
            return self._names.imports.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    def member(self, dotted: str, who: str) -> None:
        """Refuse a member of a module that a kernel may not use."""
        module, _, name = dotted.rpartition(".")
        if dotted in MODULES:
            return
        if module not in MODULES or name not in OF_MODULE[module]:
            raise NotRerunnable(f"{who} uses `{dotted}`, which cannot be run in a kernel that is graded.")

    def constant(self, value: ast.expr, who: str) -> str:
        """The text of a constant's value, which may be numbers, texts, Triton's types, and arithmetic on them."""
        self.count(value)
        problem = NotRerunnable(f"{who} is not a plain constant: give it a number, or hand it over as an argument.")
        for node in ast.walk(value):
            if not isinstance(node, CONSTANTS):
                raise problem
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _is_small_power(node):
                raise problem
            if isinstance(node, ast.Attribute) and self.dotted(node) is None:
                raise problem
            if isinstance(node, ast.Call) and not (
                self.dotted(node.func) or (isinstance(node.func, ast.Name) and node.func.id in BUILTINS)
            ):
                raise problem
        value = deepcopy(value)
        return ast.unparse(Frozen().visit(Renaming(self, who, frozenset()).visit(value)))

    def _import(self, alias: str, who: str) -> None:
        dotted = self._names.imports[alias]
        self.member(dotted, who)
        self._imports[alias] = dotted

    def _is_jitted(self, definition: ast.FunctionDef) -> bool:
        decorators = [one.func if isinstance(one, ast.Call) else one for one in definition.decorator_list]
        return any(self.dotted(one) == "triton.jit" for one in decorators)

    def jit_options(self, definition: ast.FunctionDef) -> list[ast.keyword]:
        """The options of its @triton.jit(...), as far as they are constants."""
        calls = [one for one in definition.decorator_list if isinstance(one, ast.Call)]
        options = [word for call in calls if self.dotted(call.func) == "triton.jit" for word in call.keywords]
        literal = (ast.Constant, ast.List, ast.Tuple, ast.expr_context)
        return [word for word in options if word.arg and all(isinstance(n, literal) for n in ast.walk(word.value))]


def _is_small_power(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return all(isinstance(one, ast.Constant) and type(one.value) is int and one.value <= MAX_POWER for one in sides)
