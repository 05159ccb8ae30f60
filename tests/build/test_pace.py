"""How long a lab takes is declared once, and said in its opening, at places to stop and in the README's table."""

from __future__ import annotations

from dataclasses import replace

import pytest

import labkit.labs
from grading.build import build, problems
from grading.build.directives import stop_line, time_line
from grading.build.table import table
from labkit.exercises import everything, ids_of_lab
from labkit.labs import LABS, Lab, find_lab, in_hours, rounded
from tests.build import lesson
from tests.build.lesson import EXERCISES

SMALL = Lab("20", "A small lab", "memory", 160, 30)
OPENING = lesson.text("# A small lab\n\n[[time]]")
STOP = lesson.cell("print(decode(1))", tags='tags=["figure"]') + "\n" + lesson.text("[[stop]]")


@pytest.fixture
def declared(monkeypatch) -> None:
    """Lab 07 as one that stands."""
    monkeypatch.setattr(labkit.labs, "LABS", tuple(SMALL if lab.id == "20" else lab for lab in LABS))


def test_every_lab_that_has_exercises_has_minutes_and_no_other() -> None:
    assert {lab.id for lab in LABS if lab.stands} == {exercise_id[:2] for exercise_id in everything()}
    for lab in LABS:
        optional = [everything()[one] for one in ids_of_lab(lab.id) if everything()[one].optional]
        assert bool(lab.optional_minutes) == bool(optional), lab.id


def test_a_lab_takes_longer_than_its_exercises() -> None:
    for lab in LABS:
        core = sum(everything()[one].minutes for one in ids_of_lab(lab.id) if not everything()[one].optional)
        assert not lab.stands or core < lab.minutes, f"lab {lab.id}: the minutes count the reading as well"


def test_what_a_lab_needs_comes_before_it_and_has_a_stand_in() -> None:
    for lab in LABS:
        assert all(need < lab.id for need in lab.needs)
        assert {need for need, _ in lab.instead} == ({*lab.needs} if lab.stands else set())


def test_minutes_in_words() -> None:
    assert [in_hours(minutes) for minutes in (5, 60, 165)] == ["5 min", "1 h", "2 h 45 min"]
    assert [rounded(minutes) for minutes in (0, 12.4, 58)] == [5, 10, 60]
    assert time_line(SMALL) == (
        "**Time:** about 2 h 40 min, reading and exercises together; what is optional takes about 30 min more."
    )
    assert time_line(replace(SMALL, optional_minutes=0)).endswith("reading and exercises together.")
    skipped = replace(SMALL, needs=("02",), instead=(("02", "`torch.finfo`"),))
    assert time_line(skipped) == f"{time_line(SMALL)} If you skipped lab 02, use `torch.finfo`."


def test_a_place_to_stop_counts_core_exercises_alone() -> None:
    optional = replace(EXERCISES["20-guess"], id="20-more", optional=True, minutes=500)
    line = stop_line(SMALL, EXERCISES | {"20-more": optional}, {"20-decode", "20-more"})
    assert (
        line == "> **A good place to stop.** About 2 h 30 min of this lab's core lies behind you, about 10 min is left."
    )
    whole = stop_line(replace(SMALL, optional_minutes=0), EXERCISES, {"20-decode"})
    assert whole == line.replace("this lab's core", "this lab")


def test_both_are_put_into_the_notebook(declared, tmp_path) -> None:
    notebook = build(lesson.write(tmp_path, lesson.source(title=OPENING, figure=STOP)), EXERCISES).student
    assert time_line(SMALL) in notebook.cells[0].source
    assert [cell.source for cell in notebook.cells if "good place" in cell.source] == [
        stop_line(SMALL, EXERCISES, {"20-decode"})
    ]


def test_the_table_says_the_same(declared) -> None:
    text = table(list(EXERCISES.values()), {"20": "20_small_lab"})
    assert "| 2 | 3.5 | 2 h 40 min | 30 min | – |\n" in text
    assert "· about 2 h 40 min with reading, 30 min more for what is optional\n" in text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"figure": STOP}, "the lab's opening, and nothing else, says how long it takes: [[time]]"),
        (
            {"title": OPENING},
            "no good place to stop: put [[stop]] behind the first sitting's last core exercise",
        ),
        ({"title": OPENING, "end": lesson.text("[[stop]]")}, "[[stop]] does not stand between two core exercises"),
    ],
)
def test_a_lab_without_them_is_refused(declared, tmp_path, changes, reason) -> None:
    found = problems(lesson.write(tmp_path, lesson.source(**changes)), EXERCISES)
    assert [problem.reason for problem in found] == [reason]


def test_a_lab_that_nobody_declared_is_refused(tmp_path) -> None:
    path = lesson.write(tmp_path, lesson.source().replace("20-", "77-"), "77_other.py")
    found = problems(path, {})
    assert "lab 77 is not declared, in labkit/labs.py or by a lab.toml" in [problem.reason for problem in found]


def test_labs_are_found_by_their_number() -> None:
    assert find_lab("05").title == "Recomputation and offloading"
    with pytest.raises(KeyError):
        find_lab("77")
