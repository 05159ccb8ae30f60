"""The leaderboard of a class that really handed in 20-budget: billed, trained and judged as in every course.

A cheat has no place, and a script that is played again in its sandbox comes to the score that it had.
"""

from __future__ import annotations

import csv
from pathlib import Path

import nbformat
import pytest

from grading.__main__ import main
from grading.build import build
from grading.course import Course
from grading.demo.answers import solutions
from grading.gradebook.setup import CONFIG_TEXT, release
from grading.gradebook.sources import SOLUTIONS
from grading.pseudonym import pseudonym_of
from labkit.capstone import ghosts, read
from tests.grading.in_process import graded_in_process
from tests.grading.lessons import cell_of, grade

pytestmark = [pytest.mark.full("classroom"), pytest.mark.timeout(900)]

LAB, EXERCISE = "20_capstone", "20-budget"
CHEAT = Path(__file__).resolve().parents[1] / "wrong" / EXERCISE / "does_nothing_in_every_other_step.py"


def new_course(root: Path) -> tuple[Course, str]:
    """A released course with lab 20, and the lab's own answer."""
    built = build(SOLUTIONS / f"{LAB}.py")
    (root / "source" / LAB).mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG_TEXT.format(course_id="records"))
    nbformat.write(built.solution, root / "source" / LAB / f"{LAB}.ipynb")
    course = Course.at(root)
    course.make_key()
    release(course, [LAB])
    return course, solutions(built.solution, LAB)[EXERCISE]


def hand_in(course: Course, student: str, script: str | None) -> None:
    notebook = nbformat.read(course.root / "release" / LAB / f"{LAB}.ipynb", 4)
    if script is not None:
        cell_of(notebook, EXERCISE).source = script
    path = course.submitted(LAB, student)
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    (path.parent / "timestamp.txt").write_text("2026-03-01 10:00:00 UTC")


def table(course: Course) -> dict[str, dict[str, str]]:
    with (course.root / "leaderboard-basement.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def test_a_real_script_has_its_place_and_comes_to_the_same_score_again(tmp_path: Path, capsys) -> None:
    course, solved = new_course(tmp_path / "course")
    hand_in(course, "ada", solved)
    hand_in(course, "eve", CHEAT.read_text())
    hand_in(course, "hal", None)
    with graded_in_process():
        assert grade(course, LAB, course.students(LAB), workers=1) == []
        command = ["leaderboard", str(course.root), "--verify", "--workers", "1", "--until", "2026-03-02"]
        assert main(command) == 0
    told = capsys.readouterr().out
    assert "1 of 1 scores come out exactly when the scripts are played again." in told
    assert "Every loss agrees to the last bit." in told
    rows = table(course)
    assert list(rows) == [pseudonym_of(course, "ada")]
    (row,) = rows.values()
    assert (row["place"], row["shared_by"], row["changed"]) == ("1", "1", read(solved).changed)
    assert row["digest"] == read(solved).digest and int(row["declared_steps"]) == read(solved).steps
    assert float(row["virtual_hours"]) <= ghosts()["basement"]["bronze"].virtual_hours
    page = (course.root / "leaderboard-basement.html").read_text()
    assert "isolation: none" not in page and page.count('class="ghost"') == len(
        [ghost for ghost in ghosts()["basement"].values() if ghost.counts]
    )
