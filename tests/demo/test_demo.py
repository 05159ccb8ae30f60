"""The demo: it harms no folder, its class is what it says, its self-check has teeth, and the whole of it runs."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import nbformat
import pytest

from grading.__main__ import main
from grading.build import build
from grading.demo import answers, examples, handins
from grading.demo.answers import LabAnswers
from grading.demo.folder import MARKER, claim
from grading.demo.handins import DemoSubmission
from grading.demo.roster import FULL, roster
from grading.demo.self_check import unexpected_grades
from grading.errors import UserError
from grading.gradebook.sources import SOLUTIONS
from grading.report.record import ClassRecord, Handin, Item, LabRecord, Mark
from labkit.exercises import of_lab

LAB = "00_start_here"
SOLVED = frozenset({"00-warm-up"})


@pytest.fixture(scope="module")
def lab() -> LabAnswers:
    built = build(SOLUTIONS / f"{LAB}.py")
    solved = answers.solutions(built.solution, LAB)
    wrong = {exercise: answers.known("wrong", exercise) for exercise in solved}
    right = {exercise: answers.known("right", exercise) for exercise in solved}
    return LabAnswers(LAB, built.student, solved, wrong, right, answers.essays(built.solution))


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "thesis"
    theirs.mkdir()
    (theirs / "report.html").write_text("mine")
    with pytest.raises(UserError, match="was not made by the demo"):
        claim(theirs)
    assert (theirs / "report.html").read_text() == "mine"


def test_a_strange_file_in_the_demos_folder_is_refused(tmp_path: Path) -> None:
    claim(tmp_path / "demo")
    (tmp_path / "demo" / "grades.csv").write_text("old")
    (tmp_path / "demo" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"notes\.txt"):
        claim(tmp_path / "demo")
    assert (tmp_path / "demo" / "grades.csv").exists()


def test_a_link_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    (tmp_path / "file").write_text("mine")
    for name in ("link", "file"):
        with pytest.raises(UserError, match="no plain folder"):
            claim(tmp_path / name)


def test_the_demos_own_folder_is_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "build" / "demo"
    claim(folder)
    (folder / "course" / "submitted").mkdir(parents=True)
    (folder / ".course-k3j").mkdir()
    (folder / "grades.csv").write_text("old")
    claim(folder)
    assert [path.name for path in folder.iterdir()] == [MARKER]


def test_the_class() -> None:
    students = roster(FULL + 3)
    assert len({student.name for student in students}) == FULL + 3
    assert FULL == 24
    assert [student.kind for student in roster(2)] == ["all solved", "left blank"]


@pytest.mark.slow
def test_a_lab_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "--labs", "00,77", "--out", str(tmp_path / "demo")]) == 2
    assert 'there is no lab "77" in this course' in capsys.readouterr().err


def test_a_class_that_is_too_small(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "--students", "1", "--out", str(tmp_path / "demo")]) == 2
    assert "2 students" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    "way, earns",
    [
        (handins.perfect, SOLVED),
        (handins.blank, frozenset()),
        (handins.own_style, SOLVED),
        (handins.noisy, SOLVED),
        (handins.syntax_error, frozenset()),
        (handins.endless_loop, frozenset()),
        (handins.ends_the_process, SOLVED),
        (handins.duplicated_cell, SOLVED),
        (handins.renamed_cell, SOLVED),
        (handins.deleted_check, SOLVED),
        (handins.truncated, None),
    ],
)
def test_every_way_to_hand_in(lab: LabAnswers, way, earns) -> None:
    made = way(lab, Random(1))
    assert made == way(lab, Random(1))
    assert made.earns == earns
    assert "BEGIN SOLUTION" not in made.text
    if earns is None:
        with pytest.raises(nbformat.reader.NotJSONError):
            nbformat.reads(made.text, as_version=4)
    else:
        assert nbformat.reads(made.text, as_version=4).cells


def test_some_partly_wrong_students_are_right_and_some_are_not(lab: LabAnswers) -> None:
    earned = {handins.partly_wrong(lab, Random(seed)).earns for seed in range(20)}
    assert earned == {SOLVED, frozenset()}


def test_known_answers_come_as_a_student_would_type_them(lab: LabAnswers) -> None:
    for texts in (*lab.wrong.values(), *lab.right.values()):
        assert len(texts) >= 2
        for text in texts:
            assert not text.startswith("#")
            compile(text, "answer", "exec")


def test_without_the_known_answers_the_demo_says_so(lab: LabAnswers, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(examples, "TESTS", tmp_path)
    with pytest.raises(UserError, match="full checkout"):
        answers.require_known()


def _record(*handins: Handin) -> ClassRecord:
    return ClassRecord("demo", (LabRecord("00", "Zero", handins[0].marks[:0], handins),))


def _handin(score: float | None, state: str = "graded", penalty: float = 0.0) -> Handin:
    item = Item("00-x", "00-x-check", "exercise", "X", 2.0)
    return Handin("ada.lovelace", "00", state, (Mark(item, score, "passed"),), penalty)


@pytest.mark.parametrize(
    "handin, earns, said",
    [
        (_handin(2.0), frozenset({"00-x"}), None),
        (_handin(0.0), frozenset(), None),
        (_handin(None, "unreadable"), None, None),
        (_handin(1.0), frozenset({"00-x"}), "1 points for 00-x instead of 2"),
        (_handin(2.0), frozenset(), "2 points for 00-x instead of 0"),
        (_handin(None, "infrastructure"), frozenset({"00-x"}), "infrastructure"),
        (_handin(2.0), None, "cannot be read"),
        (_handin(2.0, penalty=0.5), frozenset({"00-x"}), "late penalty"),
    ],
)
def test_the_self_check_has_teeth(handin: Handin, earns: frozenset[str] | None, said: str | None) -> None:
    found = unexpected_grades(_record(handin), roster(2), {("00", "ada.lovelace"): DemoSubmission("", earns)})
    assert (found == []) if said is None else (len(found) == 1 and said in found[0])


def test_the_self_check_misses_nobody() -> None:
    expected = {
        ("00", "ada.lovelace"): DemoSubmission("", frozenset({"00-x"})),
        ("02", "ada.lovelace"): DemoSubmission("", frozenset()),
    }
    assert unexpected_grades(_record(_handin(2.0)), roster(2), expected) == ["02, ada.lovelace: is not in the record"]
    late = replace(roster(2)[0], days_late=2)
    assert (
        "penalty of 0"
        in unexpected_grades(_record(_handin(2.0)), [late], {k: expected[k] for k in list(expected)[:1]})[0]
    )


@pytest.mark.slow
def test_the_whole_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    # The five first: all solved, blank, partly wrong, noisy, and a file that broke off.
    code = main(["demo", "--out", str(out), "--students", "5", "--workers", "1"])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "every grade is as it should be" in said
    rows = list(csv.DictReader((out / "grades.csv").open(encoding="utf-8", newline="")))
    assert {row["lab"] for row in rows} >= {"00_start_here", "02_float_formats"}
    perfect = [row for row in rows if row["student"] == "ada.lovelace"]
    assert perfect and all(row["outcome"] in ("passed", "by hand") for row in perfect)
    extra = {row["exercise"]: row["score"] for row in perfect if row["max_score"] == "0"}
    assert extra == {one.id: f"{one.points:g}" for one in of_lab("02").values() if one.optional}
    assert all(row["score"] == row["max_score"] for row in perfect if row["exercise"] not in extra)
    blank = [row for row in rows if row["student"] == "Zoë Blank"]
    assert blank and all(row["score"] == "0" and row["outcome"] == "unanswered" for row in blank)
    assert any(row["outcome"] == "unreadable" for row in rows)
    assert any(row["student"] == "'=SUM(A1)" for row in rows)
    (tier,) = re.findall(r"^isolation: (\w+)", said, re.MULTILINE)
    assert f"isolation: {tier.lower()}, for" in (out / "report.html").read_text(encoding="utf-8")
    for path in ("report.html", "grades.csv", "course"):
        assert str(out / path) in said
