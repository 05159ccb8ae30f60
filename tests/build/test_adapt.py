"""A lab as one course wants it: what stays, what goes, what students read of it; and names that are wrong."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import nbformat
import pytest

from grading.build import build
from grading.build.adapt import BadAdaptation
from grading.build.adaptation import Adaptation
from grading.course_file import CourseFile, read_course_file
from grading.errors import UserError
from labkit import exercises, progress

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "solutions" / "02_float_formats.py"
WANTED = Adaptation(
    frozenset({"02-encode", "02-open-order"}),
    {"02-decode": 5, "02-merge-smallest": 1.5, "02-open-small-updates": 4},
)


def by_id(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def texts(notebook: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells)


def test_what_is_left_out_and_what_gives_other_points() -> None:
    built = build(LAB, wanted=WANTED)
    nbformat.validate(built.student)
    cells, before = by_id(built.student), by_id(build(LAB).student)
    assert set(before) - set(cells) == {"02-encode-check", "02-open-order"}
    stub = cells["02-encode"]
    assert stub.metadata.nbgrader.locked and not stub.metadata.nbgrader.solution
    assert stub.source == before["02-encode"].source, "later cells meet it as one that is blank"
    assert by_id(built.solution)["02-encode"].source == stub.source, "and nobody is given the solution"
    points = {name: cell.metadata.nbgrader.points for name, cell in cells.items() if cell.metadata.nbgrader.grade}
    was = {name: cell.metadata.nbgrader.points for name, cell in before.items() if cell.metadata.nbgrader.grade}
    changed = {"02-decode-check": 5, "02-merge-smallest-check": 1.5, "02-open-small-updates": 4}
    assert points == {name: changed.get(name, worth) for name, worth in was.items() if name in cells}
    assert cells["02-decode-check"].source == 'check("02-decode", decode, points=5)'
    text = texts(built.student)
    assert "**Exercise 02-encode** is not part of this course. Cells below that need its answer are left out" in text
    assert "**Exercise 02-decode** · 5 points ·" in text and "**Exercise 02-merge-smallest** · 1.5 points" in text
    assert "**In this course** this question gives 4 points." in text
    assert "**Not part of this course:** this question is not collected or graded." in text
    assert 'points={"02-decode": 5, "02-merge-smallest": 1.5}, left_out=["02-encode"])' in text
    assert "Write `encode(x, fmt)`" not in text and "Write `encode(x, fmt)`" in texts(build(LAB).student)
    assert "**Time:** about 1 h 45 min" in text, "115 minutes in proportion"


def test_nothing_wanted_changes_no_byte() -> None:
    other_lab = Adaptation(frozenset({"05-offload"}), {"05-checkpoint": 9})
    assert build(LAB, wanted=other_lab) == build(LAB)


@pytest.mark.slow
def test_of_each_lab_every_exercise_but_the_first_can_go() -> None:
    for path in sorted((ROOT / "solutions").glob("[0-9][0-9]_*.py")):
        first, *rest = exercises.of_lab(path.stem[:2])
        if not rest:
            continue
        built = build(path, wanted=Adaptation(frozenset(rest), {first: 7}))
        nbformat.validate(built.student)
        assert {name for name in by_id(built.student) if name.endswith("-check")} == {f"{first}-check"}, path.name
        assert "A good place to stop" not in texts(built.student), path.name
        assert not any(f"**Exercise {name}** ·" in texts(built.student) for name in rest)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            Adaptation(frozenset({"02-encod"})),
            'lab 02 has no exercise or question "02-encod" (it has: 02-decode, 02-en',
        ),
        (Adaptation(points={"02-nothing": 2}), 'lab 02 has no exercise or question "02-nothing" (it has: '),
        (Adaptation(frozenset({"02-decode"}), {"02-decode": 2}), "02-decode is left out and has points"),
        (Adaptation(points={"02-decode": 0}), "0 points for 02-decode: they must be above 0 (leave it out instead)"),
        (Adaptation(points={"02-decode": float("nan")}), "nan points for 02-decode: they must be above 0"),
        (
            Adaptation(frozenset({*exercises.of_lab("02"), "02-open-order", "02-open-small-updates"})),
            "nothing with points is left of lab 02: leave the whole lab out instead",
        ),
    ],
)
def test_what_cannot_be_had_is_named(wanted: Adaptation, said: str) -> None:
    with pytest.raises(BadAdaptation) as error:
        build(LAB, wanted=wanted)
    assert str(error.value).startswith(said)


def test_progress_counts_as_the_course_does() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        progress("02", {}, points={"02-decode": 5, "02-merge-smallest": 1.5}, left_out=["02-encode"])
    lines = printed.getvalue().splitlines()
    assert not any("02-encode" in line for line in lines)
    assert any("02-decode " in line and line.endswith("0 of 5") for line in lines)
    assert any("02-merge-smallest " in line and line.endswith("0 of 1.5") for line in lines), "it is core here"
    core = sum(one.points for one in exercises.of_lab("02").values() if not one.optional)
    less = exercises.find("02-encode").points + exercises.find("02-decode").points
    assert f"of {core - less + 5 + 1.5:g} points" in lines[-1]


def test_a_course_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "course.toml"
    assert read_course_file(path) == CourseFile()
    path.write_text('labs = ["00", "02"]\nleave_out = ["02-encode"]\n[points]\n"02-decode" = 5\n')
    wanted = Adaptation(frozenset({"02-encode"}), {"02-decode": 5.0})
    assert read_course_file(path) == CourseFile(("00", "02"), wanted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("labs = [", "is not TOML ("),
        ('lab = ["02"]', 'has "lab", which means nothing here: it may have labs, '),
        ("labs = [2]", 'labs is [2]: it takes numbers of labs in quotes, as in ["00", "02"]'),
        ('labs = ["02_float_formats"]', "labs is ['02_float_formats']: it takes numbers of labs in quotes"),
        ('leave_out = "02-encode"', "leave_out is '02-encode': it takes ids of exercises or questions"),
        ("points = 3", 'points is no table: write [points], and below it lines as "02-decode" = 5'),
        ('[points]\n"02-decode" = "5"', "points of \"02-decode\" are '5': write lines as"),
        ('[points]\n"02-decode" = true', 'points of "02-decode" are True: write lines as'),
        ("[points]\n02-decode = 5\ndecode = 1", 'points of "decode" are 1: write lines as'),
        ('labs = ["02"]\nleave_out = ["05-offload"]', 'says something of "05-offload": its labs are 02 alone'),
    ],
)
def test_what_is_no_course_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "course.toml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_course_file(path)
    assert str(error.value).startswith(str(path)) and said in str(error.value)
