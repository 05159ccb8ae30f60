"""What the files of this repository import, read from their syntax trees.

Imports inside functions included: what is not imported cannot be checked by importing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Import:
    """One imported module. `deferred`: inside a function, so that it happens only when that is called."""

    name: str
    line: int
    deferred: bool


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass(frozen=True)
class Module:
    """What the tests ask of a file. words: the texts in it that hold no space."""

    imports: tuple[Import, ...]
    docstring: str | None
    words: tuple[str, ...]


@cache
def read(path: Path) -> Module:
    """A file, parsed once for all tests; its tree is not kept, which would be millions of objects."""
    imports: list[Import] = []
    words: list[str] = []

    def look(node: ast.AST, deferred: bool) -> None:
        if isinstance(node, ast.Import):
            imports.extend(Import(item.name, node.lineno, deferred) for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are absolute in this project"
            names = [f"{node.module}.{item.name}" for item in node.names]
            names = [name if is_module(name) else node.module for name in names]
            imports.extend(Import(name, node.lineno, deferred) for name in names)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and " " not in node.value:
                words.append(node.value)
            return
        deferred = deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            look(child, deferred)

    tree = ast.parse(path.read_text(encoding="utf-8"))
    look(tree, deferred=False)
    return Module(tuple(imports), ast.get_docstring(tree), tuple(words))


def imports(path: Path) -> tuple[Import, ...]:
    """Every module imported by this file; `from a import b` counts as a.b where that is a module."""
    return read(path).imports


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def room_of(name: str, package: str = "labkit") -> str | None:
    """The room of "labkit.check.text"; None for the package itself and for any other."""
    parts = name.split(".")
    return parts[1] if parts[0] == package and len(parts) > 1 else None


def problems(path: Path, forbidden) -> list[str]:
    where = path.relative_to(ROOT)
    return [f"{where}:{one.line} imports {one.name}" for one in imports(path) if forbidden(one)]
