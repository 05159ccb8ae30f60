"""The rooms of labkit and grading import only downwards, and nothing a student runs can reach the instructor's side."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import module_imports
from tests.module_imports import ROOT, Import, dotted, imports, modules, problems, read, room_of

ROOMS = (
    "lazy",
    "forking",
    "devices",
    "full_precision",
    "cut",
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


@pytest.mark.parametrize("folder", ["labkit", "grading", "benchmarks"])
def test_every_module_says_what_it_is(folder: str) -> None:
    silent = [str(path.relative_to(ROOT)) for path in modules(folder) if not read(path).docstring]
    assert silent == []


def test_the_test_sees_what_it_is_meant_to_see(tmp_path: Path, monkeypatch) -> None:
    """Its own control: imports in every form are found, and told apart."""
    monkeypatch.setattr(module_imports, "ROOT", tmp_path)
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
