"""A script as text -> its declarations and its two functions. What it may not use is refused, with its line.

    MACHINE = "basement"
    STEPS = 200
    CHANGED = "checkpoint every block"

    def setup(run): ...             # returns whatever `step` needs
    def step(run, state, number): ...     # one optimizer step; number counts from 0

Reading runs nothing. `load` runs the text's top level, in a namespace that holds what `allowed` lists.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from labkit.capstone.allowed import ATTRIBUTES, BASES, BUILTINS, IMPORTS, MAY_BE_SET, REFUSED, namespace, of_namespaces
from labkit.capstone.given import its_own
from labkit.capstone.kit import KIT
from labkit.capstone.machine import MACHINES

MOST_STEPS = 400
MOST_CHARACTERS = 30_000
MOST_ON_CHANGED = 120
GIVEN = ("torch", "nn", "F", "kit", "math")


class ScriptRefused(ValueError):
    """The text is no script that can be run; the message says which line, and why."""


@dataclass(frozen=True)
class Script:
    """`Script(text, "basement", 200, "checkpoint every block")`"""

    text: str
    machine: str
    steps: int
    changed: str

    @property
    def digest(self) -> str:
        """Of its tokens' layout as written: the same text has the same."""
        return hashlib.sha256(self.text.strip().encode()).hexdigest()[:16]

    @property
    def uses(self) -> list[str]:
        """The names after a dot and the texts in it, such as "checkpoint" and "fused": what a hint need not tell it."""
        nodes = list(ast.walk(ast.parse(self.text)))
        names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        return sorted(names | (texts & {"fused"}))


def read(text: str) -> Script:
    """The script of this text, with what it declares. Raises ScriptRefused."""
    tree = _parsed(text)
    defined, classes = _defined(tree), _classes(tree)
    for node in ast.walk(tree):
        if reason := _refusal(node, defined, classes):
            raise ScriptRefused(f"line {getattr(node, 'lineno', 1)}: {reason}")
    declared = dict(_constants(tree))
    missing = [name for name in ("setup", "step") if name not in _functions(tree)]
    if missing:
        raise ScriptRefused(f"a script defines setup(run) and step(run, state, number): there is no {missing[0]}")
    machine, steps = declared.get("MACHINE"), declared.get("STEPS")
    if machine not in MACHINES:
        raise ScriptRefused(f"MACHINE is one of {', '.join(MACHINES)}, written as a plain string, not {machine!r}")
    if type(steps) is not int or not 1 <= steps <= MOST_STEPS:
        raise ScriptRefused(f"STEPS is a plain whole number from 1 to {MOST_STEPS}, not {steps!r}")
    changed = declared.get("CHANGED", "")
    if not isinstance(changed, str) or len(changed) > MOST_ON_CHANGED or not changed.isprintable():
        raise ScriptRefused(f"CHANGED is one line of at most {MOST_ON_CHANGED} characters")
    return Script(text, machine, steps, changed)


def load(script: Script) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`setup` and `step`, made afresh: nothing is left of a run before."""
    names = {**namespace(KIT), "__name__": "script"}
    # What a class statement needs, and what PyTorch's C++ imports with. No script can write a name that begins so.
    for hidden in ("__build_class__", "__import__"):
        names["__builtins__"][hidden] = getattr(builtins, hidden)
    tree = _parsed(script.text)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    names["__own__"] = its_own
    exec(compile(ast.fix_missing_locations(_Guarded().visit(tree)), "<script>", "exec"), names)
    return names["setup"], names["step"]


class _Guarded(ast.NodeTransformer):
    """`x.lr = 1` becomes `__own__(x).lr = 1`: whether it may be set hangs on what `x` is, and not on its name."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store):
            asked = ast.Call(ast.Name("__own__", ast.Load()), [node.value], [])
            node.value = ast.copy_location(asked, node.value)
        return node


def _parsed(text: str) -> ast.Module:
    if len(text) > MOST_CHARACTERS:
        raise ScriptRefused(f"a script has at most {MOST_CHARACTERS:,} characters, and this has {len(text):,}")
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise ScriptRefused(f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ScriptRefused("this is no Python that could be read") from None


def _refusal(node: ast.AST, defined: frozenset[str], classes: frozenset[str]) -> str | None:
    """Why a part of a script is refused, if it is. classes: names that stand for the script's own classes alone."""
    if isinstance(node, ast.Import | ast.ImportFrom) and ast.unparse(node) in IMPORTS:
        return None
    if isinstance(node, REFUSED):
        given = ", ".join(GIVEN)
        return f"a script does without `{ast.unparse(node).splitlines()[0]}`; what it may use is there: {given} and run"
    if isinstance(node, ast.Name) and node.id.startswith("_") and node.id.strip("_"):
        return f"a script uses no name that begins with an underscore, as `{node.id}` does"
    loads = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in defined
    if loads and hasattr(builtins, node.id) and node.id not in BUILTINS:
        return f"`{node.id}` is not among what a script may use"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in GIVEN:
        return f"`{node.id}` is given, and cannot be replaced"
    if isinstance(node, ast.Attribute):
        return _refused_attribute(node, defined)
    if isinstance(node, ast.ClassDef) and (reason := _refused_class(node, classes)):
        return reason
    if isinstance(node, ast.arg | ast.FunctionDef | ast.ClassDef):
        name = node.arg if isinstance(node, ast.arg) else node.name
        if name in GIVEN or (name.startswith("_") and name.strip("_") and name != "__init__"):
            return f"nothing of a script can be called `{name}`"
    return None


def _refused_class(node: ast.ClassDef, classes: frozenset[str]) -> str | None:
    """A tensor of a class of the script's own could tell the meter what it likes."""
    for base in (*node.bases, *(keyword.value for keyword in node.keywords)):
        text = ast.unparse(base)
        if node.keywords or (text not in BASES and text not in classes):
            return f"a class of a script is a `nn.Module` or a `torch.autograd.Function`, not a `{text}`"
    return None


def _classes(tree: ast.Module) -> frozenset[str]:
    """Names that the script gives to its classes, and to nothing else."""
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    others = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    others |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    others |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return frozenset(names) - others


def _refused_attribute(node: ast.Attribute, defined: frozenset[str]) -> str | None:
    if isinstance(node.ctx, ast.Store) and _root(node) in (*GIVEN, "run"):
        return f"`{ast.unparse(node)}` cannot be set: a script patches nothing"
    if isinstance(node.ctx, ast.Store) and hasattr(torch.Tensor, node.attr) and node.attr not in MAY_BE_SET:
        return f"`.{node.attr}` is something that tensors do, and cannot be set: call what is yours by another name"
    if node.attr == "__init__" and ast.unparse(node.value) == "super()":
        return None
    if node.attr in ATTRIBUTES or node.attr in of_namespaces(KIT) or node.attr in defined:
        return None
    if node.attr.startswith("_"):
        return f"a script uses no name that begins with an underscore, as `.{node.attr}` does"
    return f"`.{node.attr}` is not among what a script may use"


def _root(node: ast.expr) -> str:
    """The name that a chain of attributes and indices begins with: "kit" of `kit.AdamW.lr`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _defined(tree: ast.Module) -> frozenset[str]:
    """Names that the script itself gives to something, less those by which it could reach something of ours."""
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return frozenset(name for name in found if not name.startswith("_") and not _leads_out(name))


_KINDS = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, type(lambda: 0), str, type((lambda: (yield))()))


def _leads_out(name: str) -> bool:
    """Whether an object that is no script's has an attribute of this name."""
    return any(hasattr(kind, name) for kind in _KINDS) or name.startswith(("f_", "tb_", "gi_", "cr_", "ag_", "co_"))


def _constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield from ((to.id, node.value.value) for to in node.targets if isinstance(to, ast.Name))


def _functions(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
