"""No two modules import one another, over however many others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests import module_imports
from tests.module_imports import dotted, imports, modules


@pytest.mark.parametrize("folder", ["labkit", "grading"])
def test_no_modules_import_one_another_in_a_circle(folder: str) -> None:
    """Imports for type checkers and inside functions included: two files that need each other are one idea, or three.

    Control: `test_a_circle_is_found`.
    """
    imported = {dotted(path): {one.name for one in imports(path)} for path in modules(folder)}
    assert circles(imported) == []


def circles(imported: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that all import each other, over however many others; a module that imports itself too."""

    @cache
    def reached(module: str) -> frozenset[str]:
        found, new = set(), {module}
        while new:
            new = {name for one in new for name in imported[one] if name in imported} - found
            found |= new
        return frozenset(found)

    groups = {frozenset(other for other in reached(one) if one in reached(other)) for one in imported}
    return sorted(sorted(group) for group in groups if group)


def test_a_circle_is_found(tmp_path: Path, monkeypatch) -> None:
    """The control of the test for circles: one through a function, a type checker's import and a package's own file."""
    monkeypatch.setattr(module_imports, "ROOT", tmp_path)
    files = {
        "__init__": "from room import start\n",
        "start": "def f():\n    from room.middle import g\n",
        "middle": "import typing\nif typing.TYPE_CHECKING:\n    from room import value\nimport room.beside\n",
        "beside": "import torch\n",
        "alone": "from room import beside, start\n",
        "twice": "import room.twice\n",
    }
    (tmp_path / "room").mkdir()
    for name, text in files.items():
        (tmp_path / "room" / f"{name}.py").write_text(text)
    imported = {dotted(path): {one.name for one in imports(path)} for path in modules("room")}
    assert circles(imported) == [["room", "room.middle", "room.start"], ["room.twice"]]
    assert circles({name: names - {"room"} for name, names in imported.items()}) == [["room.twice"]]
