"""The rooms of labkit and grading import only downwards, nothing a student runs
can reach the instructor's side, and so on.

Read from the syntax trees, imports inside functions included: what is not imported cannot be checked by importing.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from grading.isolation.tiers import NONE, TIERS

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "lazy",
    "forking",
    "devices",
    "full_precision",
    "measures",
    "spec",
    "tree",
    "formats",
    "units",
    "unwritten",
    "students_code",
    "blanks",
    "labs",
    "busy_times",
    "interrupts",
    "clock",
    "pipeline",
    "plan",
    "store",
    "shell",
    "features",
    "limits",
    "interpreter",
    "simt",
    "meters",
    "simdevice",
    "ranks",
    "torch_oracles",
    "left_out",
    "compare",
    "stage",
    "forbids",
    "forbidden_calls",
    "troubles",
    "observe",
    "capstone",
    "exercises",
    "material",
    "oracles",
    "check",
    "figures",
    "predictions",
    "env",
)
"""Each may import those before it. `labkit/__init__.py` is above them all."""

CORE = {"torch", "numpy", "matplotlib", "safetensors", "jaxtyping", "IPython"}
"""What labkit may import on its own import: the core dependencies. Anything else only inside a function."""


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


def test_every_room_is_in_the_order() -> None:
    found = {room_of(dotted(path)) for path in modules("labkit")} - {None}
    assert found <= set(ROOMS), f"give {sorted(found - set(ROOMS))} a place in ROOMS"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    allowed = {*ROOMS[: ROOMS.index(room) + 1]}
    paths = [path for path in modules("labkit") if room_of(dotted(path)) == room]
    assert paths, f"there is no labkit.{room}"

    def points_up(one: Import) -> bool:
        return one.name == "labkit" or (room_of(one.name) is not None and room_of(one.name) not in allowed)

    assert [problem for path in paths for problem in problems(path, points_up)] == []


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


def drawn_rooms(drawing: str) -> dict[str, set[str]]:
    """The rooms of a drawing (`grading/__init__.py`) from the top down, each with the rooms that it says it imports."""
    drawn: dict[str, set[str]] = {}
    for line in drawing.splitlines():
        if found := re.fullmatch(r" {4}(\w+) {2,}\S.*", line):
            drawn[found[1]] = set()
        elif found := re.fullmatch(r" {8,}< (.*)", line):
            *above, room = drawn
            drawn[room] |= set(above) if found[1] == "all above" else set(found[1].split())
    return drawn


def room_problems(drawn: Mapping[str, set[str]], found: Mapping[str, set[str]]) -> list[str]:
    """Where rooms are not as drawn, and where the drawing points down. found: by room, the rooms that it imports."""
    told, above = [], set()
    for room, imported in drawn.items():
        told += [f"{room} imports {other}, which does not stand above it" for other in sorted(imported - above)]
        above.add(room)
    told += [f"{room} is not drawn" for room in sorted(found.keys() - drawn.keys())]
    told += [f"{room} is drawn and is not there" for room in sorted(drawn.keys() - found.keys())]
    for room in sorted(found.keys() & drawn.keys()):
        told += [f"{room} imports {other}, and is not drawn so" for other in sorted(found[room] - drawn[room])]
    return told


def grading_rooms() -> dict[str, set[str]]:
    """By room of grading, the other rooms that its modules import."""
    found: dict[str, set[str]] = {}
    for path in modules("grading"):
        if room := room_of(dotted(path), "grading"):
            others = {room_of(one.name, "grading") for one in imports(path)} - {room, None}
            found.setdefault(room, set()).update(others)
    return found


def test_the_rooms_of_grading_are_as_they_are_drawn() -> None:
    drawing = read(ROOT / "grading/__init__.py").docstring
    drawn, found = drawn_rooms(drawing), grading_rooms()
    assert room_problems(drawn, found) == [], "grading/__init__.py draws the rooms of grading"
    stale = {room: drawn[room] - found[room] for room in drawn if room != "commands" and drawn[room] - found[room]}
    assert stale == {}, "what a room no longer imports goes from the drawing"


def test_rooms_that_are_not_as_drawn_are_found() -> None:
    """The control: an import that is not drawn, a room that is not, one that is gone, an arrow that points down."""
    drawing = """The rooms.

    low       is below
    middle    is between
              < low
    high      is on top
              < all above
"""
    drawn = drawn_rooms(drawing)
    assert drawn == {"low": set(), "middle": {"low"}, "high": {"low", "middle"}}
    assert room_problems(drawn, {"low": set(), "middle": set(), "high": {"low"}}) == []
    found = {"low": {"high"}, "middle": {"low"}, "new": {"low"}}
    assert room_problems(drawn, found) == [
        "new is not drawn",
        "high is drawn and is not there",
        "low imports high, and is not drawn so",
    ]
    assert room_problems({"a": {"b"}, "b": set()}, {"a": set(), "b": set()}) == [
        "a imports b, which does not stand above it"
    ]


def test_labkit_knows_nothing_of_the_instructor_s_side() -> None:
    theirs = ("grading", "solutions", "tests", "benchmarks")
    found = [p for path in modules("labkit") for p in problems(path, lambda one: one.name.split(".")[0] in theirs)]
    assert found == []


def test_what_runs_beside_student_code_knows_no_expectation() -> None:
    """Not by an import, and not by a name that an import function could be given."""
    for path in modules("labkit/exercises"):
        assert problems(path, lambda one: room_of(one.name) == "oracles") == []
        assert [text for text in read(path).words if "labkit.oracles" in text] == [], path


def test_the_graders_worker_knows_no_expectation() -> None:
    def tells(one: Import) -> bool:
        return room_of(one.name) == "oracles" or one.name.startswith("grading.hidden")

    assert [p for path in modules("grading/worker") for p in problems(path, tells)] == []


def test_labkit_imports_with_its_core_dependencies_alone() -> None:
    known = CORE | {"labkit"} | set(sys.stdlib_module_names)

    def optional(one: Import) -> bool:
        return not one.deferred and one.name.split(".")[0] not in known

    assert [p for path in modules("labkit") for p in problems(path, optional)] == []


def test_the_grading_package_reads_no_solution_as_code() -> None:
    found = [p for path in modules("grading") for p in problems(path, lambda one: one.name.startswith("solutions"))]
    assert found == []


NAMES = {*TIERS, NONE.name}
OTHER_MEANINGS = {("kind", "kernel"), ("cat", "kernel"), ("times", "none")}
"""Comparisons with a word that is also a tier's name, by the name of what is compared: launches, times of hand-ins."""
QUOTED = re.compile(rf"[\"']({'|'.join(NAMES)})[\"']")
"""A file without one compares nothing with it, and need not be parsed."""


def parts_of(side: ast.AST) -> list[ast.AST]:
    """What is compared where `side` stands: itself, the elements of a display, the value of a pattern."""
    if isinstance(side, ast.Tuple | ast.List | ast.Set):
        return side.elts
    return list(ast.walk(side)) if isinstance(side, ast.pattern) else [side]


def tiers_compared_by_name(source: str) -> list[str]:
    """What this module compares with a tier's name, one of a match statement included."""
    found = []
    if not QUOTED.search(source):
        return []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        else:
            continue
        compared = {word for side in sides for word in re.findall(r"\w+", ast.unparse(side))[-1:]}
        names = {one.value for side in sides for one in parts_of(side) if isinstance(one, ast.Constant)} & NAMES
        meant = {(what, name) for what in compared for name in names} & OTHER_MEANINGS
        if names - {name for _, name in meant}:
            found.append(ast.unparse(node).splitlines()[0])
    return found


def test_only_the_tiers_own_module_tells_them_apart_by_name() -> None:
    told = {
        str(path.relative_to(ROOT)): tiers_compared_by_name(path.read_text(encoding="utf-8"))
        for folder in ("grading", "benchmarks")
        for path in modules(folder)
        if dotted(path) != "grading.isolation.tiers"
    }
    assert {path: lines for path, lines in told.items() if lines} == {}
    compared = re.compile(rf"[=!]= *[\"']({'|'.join(NAMES)})[\"']")
    assert [path for path in (ROOT / "grading").rglob("*.j2") if compared.search(path.read_text())] == []


def test_a_tier_that_is_told_by_its_name_is_seen() -> None:
    """The control: compared, looked for, matched; and not where the word means something else."""
    kernel, none = "tier == 'kernel'", "'none' != plan.isolation"
    assert tiers_compared_by_name(f"if {kernel} or {none}: pass") == [kernel, none]
    assert tiers_compared_by_name("x = tier in ('bwrap', 'kernel')") == ["tier in ('bwrap', 'kernel')"]
    assert tiers_compared_by_name("match tier:\n    case 'bwrap': pass") == ["match tier:"]
    assert tiers_compared_by_name("kind == 'kernel'; event['cat'] == 'kernel'; way.times == 'none'; f('bwrap')") == []


@pytest.mark.parametrize("folder", ["labkit", "grading", "benchmarks"])
def test_every_module_says_what_it_is(folder: str) -> None:
    silent = [str(path.relative_to(ROOT)) for path in modules(folder) if not read(path).docstring]
    assert silent == []


def test_a_circle_is_found(tmp_path: Path, monkeypatch) -> None:
    """The control of the test for circles: one through a function, a type checker's import and a package's own file."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
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


def test_the_test_sees_what_it_is_meant_to_see(tmp_path: Path, monkeypatch) -> None:
    """Its own control: imports in every form are found, and told apart."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "labkit" / "oracles").mkdir(parents=True)
    path = tmp_path / "labkit" / "low.py"
    path.write_text("import labkit.check.text\nfrom labkit import oracles, check\ndef f():\n    import grading as g\n")
    assert [(one.name, one.deferred) for one in imports(path)] == [
        ("labkit.check.text", False),
        ("labkit.oracles", False),
        ("labkit", False),
        ("grading", True),
    ]
    assert [room_of(name) for name in ("labkit.check.text", "labkit", "torch.nn")] == ["check", None, None]
