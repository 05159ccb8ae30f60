"""A course that leaves exercises out and gives points of its own, from `course` to the exports, in real nbgrader."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import nbformat
import pytest

from grading.__main__ import main
from grading.course import Course
from grading.demo.examples import solution_of
from grading.report.gather import gather_record
from labkit import exercises

pytestmark = pytest.mark.usefixtures("in_process")

LAB = "02_float_formats"
KEPT = ("02-decode", "02-merge-smallest")
LEFT_OUT = [name for name in exercises.of_lab("02") if name not in KEPT] + ["02-open-order", "02-open-small-updates"]


def course_toml(points: dict[str, float], leave_out: list[str]) -> str:
    lines = [f"{json.dumps(name)} = {worth}" for name, worth in points.items()]
    return "\n".join(['labs = ["02"]', f"leave_out = {json.dumps(leave_out)}", "[points]", *lines, ""])


def hand_in(course: Course, student: str, right: tuple[str, ...]) -> None:
    notebook = nbformat.read(course.root / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    for cell in notebook.cells:
        if (name := cell.metadata.get("nbgrader", {}).get("grade_id")) in right:
            cell.source = solution_of(name)
    path = course.submitted(LAB, student)
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def scores(course: Course) -> dict[str, float]:
    return {handin.student: handin.score for handin in gather_record(course).handins}


def grade(course: Course) -> int:
    return main(["grade", str(course.root), "02", "--isolation", "none", "--workers", "1"])


@pytest.mark.full("classroom")
@pytest.mark.timeout(600)
def test_points_are_the_courses_from_the_release_to_the_export(tmp_path: Path, capsys) -> None:
    file, root = tmp_path / "mine.toml", tmp_path / "course"
    file.write_text(course_toml({"02-decode": 5, "02-merge-smallest": 1.5}, LEFT_OUT))
    assert main(["course", str(root), "--adapt", str(file)]) == 0
    assert main(["release", str(root)]) == 0
    course = Course.at(root)
    assert course.labs() == [LAB]
    hand_in(course, "ada", KEPT)
    hand_in(course, "bob", ("02-merge-smallest",))
    assert grade(course) == 0
    assert scores(course) == {"ada": 6.5, "bob": 1.5}
    (lab,) = gather_record(course).labs
    assert {item.id: (item.max_score, item.extra) for item in lab.items} == {
        "02-decode": (5.0, 0.0),
        "02-merge-smallest": (1.5, 0.0),
    }
    assert main(["feedback", str(root), "02"]) == 0
    page = re.sub(r"<[^>]+>|\s+", " ", course.feedback(LAB, "ada").read_text())
    assert "cases pass, 5 points." in page and "6.5 of 6.5" in re.sub(r" +", " ", page)
    for form in ("nbgrader", "csv", "canvas"):
        assert main(["export", str(root), "--format", form, "--out", str(tmp_path / f"{form}.csv")]) == 0
    with (tmp_path / "nbgrader.csv").open(newline="") as rows:
        assert {row["student_id"]: (row["score"], row["max_score"]) for row in csv.DictReader(rows)} == {
            "ada": ("6.5", "6.5"),
            "bob": ("1.5", "6.5"),
        }
    assert "02-encode" not in (tmp_path / "csv.csv").read_text()
    assert '"    Points Possible","","","","","6.5"' in (tmp_path / "canvas.csv").read_text()
    capsys.readouterr()
    assert main(["explain", str(root), "02", "ada", "02-decode"]) == 0
    told = capsys.readouterr().out
    assert "passed, 5 of 5 points" in told and "3 points" not in told
    assert main(["audit", str(root)]) == 0

    # Points may change afterwards: the grades follow once the lab is released anew.
    (root / "course.toml").write_text(course_toml({"02-decode": 4, "02-merge-smallest": 1.5}, LEFT_OUT))
    capsys.readouterr()
    assert main(["adapt", str(root)]) == 0
    told = capsys.readouterr().out
    assert f"{LAB}: changed" in told and f"next: python -m grading release {root} {LAB}" in told
    assert len(list((root / ".grading" / "sources" / LAB).glob("*.ipynb"))) == 1, "the earlier one is kept"
    assert grade(course) == 2
    assert "release the lab again" in capsys.readouterr().err
    assert main(["release", str(root), "02"]) == 0 and grade(course) == 0
    assert scores(course) == {"ada": 5.5, "bob": 1.5}

    # What was handed in cannot be left out any more: nbgrader refuses, and every grade stands.
    (root / "course.toml").write_text(course_toml({"02-decode": 4}, [*LEFT_OUT, "02-merge-smallest"]))
    assert main(["adapt", str(root)]) == 0
    capsys.readouterr()
    assert main(["release", str(root), "02"]) == 2
    assert capsys.readouterr().err == (
        f"grading: lab {LAB} was not released: 02-merge-smallest-check is gone, and submissions of it were graded: "
        "nbgrader then keeps to the cells that it has: put course.toml back as it was, and run adapt\n"
    )
    assert scores(course) == {"ada": 5.5, "bob": 1.5}


@pytest.mark.slow
def test_what_cannot_be_followed_leaves_the_course_as_it_is(tmp_path: Path, capsys) -> None:
    file, root = tmp_path / "mine.toml", tmp_path / "course"

    def refused(text: str, *words: str) -> str:
        file.write_text(text)
        assert main(["course", str(root), "--adapt", str(file), *words]) == 2
        assert not root.exists()
        return capsys.readouterr().err.strip()

    known = ", ".join([*exercises.of_lab("02"), "02-open-order", "02-open-small-updates"])
    assert refused(course_toml({"02-encod": 2}, [])) == (
        f'grading: course.toml cannot be followed: lab 02 has no exercise or question "02-encod" (it has: {known})'
    )
    assert refused('labs = ["02", "77"]').startswith("grading: there is no lab 77: there are 00, 01, 02,")
    assert refused('leave_out = ["77-thing"]').startswith("grading: there is no lab 77: there are 00, 01, 02,")
    file.unlink()
    assert main(["course", str(root), "--adapt", str(file)]) == 2
    assert capsys.readouterr().err == f"grading: {file} is not there: docs/adapting.md shows what it may say\n"
    file.write_text(course_toml({}, []))
    assert main(["course", str(root), "--adapt", str(file)]) == 0
    before = (root / "source" / LAB / f"{LAB}.ipynb").read_bytes()
    (root / "course.toml").write_text("labs = [")
    assert main(["adapt", str(root)]) == 2
    assert f"{root / 'course.toml'} is not TOML (" in capsys.readouterr().err
    assert (root / "source" / LAB / f"{LAB}.ipynb").read_bytes() == before
    (root / "course.toml").write_text(course_toml({}, []))
    assert main(["adapt", str(root)]) == 0
    assert capsys.readouterr().out == "1 as before\n"


@pytest.mark.timeout(300)
def test_an_older_lab_is_released_only_where_that_is_meant(tmp_path: Path, capsys) -> None:
    """The repository may be newer, or somebody may have edited the course's notebook by hand."""
    file, root = tmp_path / "mine.toml", tmp_path / "course"
    file.write_text(course_toml({}, LEFT_OUT))
    assert main(["course", str(root), "--adapt", str(file)]) == 0
    assert main(["release", str(root), "02"]) == 0
    course = Course.at(root)
    source, released = course.source(LAB), root / "release" / LAB / f"{LAB}.ipynb"
    before, edited = released.read_text(), source.read_text().replace("Lab 02", "Our lab 02", 1)
    source.write_text(edited)
    assert capsys.readouterr().err == ""
    assert main(["release", str(root), "02"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"grading: nothing was released: {LAB} in {root / 'source'} is not what this repository")
    assert f"python -m grading adapt {root} makes it anew" in said and "add --as-it-is" in said
    assert released.read_text() == before
    assert main(["release", str(root), "02", "--as-it-is"]) == 0
    assert "Our lab 02" in released.read_text() and source.read_text() == edited
    assert main(["adapt", str(root)]) == main(["release", str(root), "02"]) == 0
    assert capsys.readouterr().err == "" and released.read_text() == before
    assert main(["release", str(root), "25"]) == 2
    assert f"added since? python -m grading adapt {root}" in capsys.readouterr().err
