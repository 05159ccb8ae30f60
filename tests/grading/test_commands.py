"""What `--help` says, and what a command answers that was asked for something that is not there."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

import pytest

from grading.__main__ import COMMANDS, main
from grading.course import Course
from tests.grading.lessons import LAB, make_course, submit

ROSTERS = {
    "": "has nobody in it",
    "student,name\n": "has nobody in it",
    "Student;id\nAda;1\n": 'no column "student": name the column with the student ids so; it has "Student", "id"',
}


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line that a command ends with, where what it was asked for cannot be done."""
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("grading: ") and said.count("\n") == 1
    return said.strip()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_explains_the_command_and_each_argument(command, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    getattr(importlib.import_module(command.module), command.adds)(parser)
    without = [action.dest for action in parser._actions if not action.help]
    assert not without, f"{command.name} --help does not say what these are: {without}"
    with pytest.raises(SystemExit):
        main([command.name, "--help"])
    said = capsys.readouterr().out
    about = parser.description or f"{command.help[0].upper()}{command.help[1:]}."
    assert " ".join(about.split()) in " ".join(said.split())


def test_a_course_is_called_alike_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    """As README and docs write it: DIR LAB STUDENT."""
    for command, words in {"regrade": "DIR LAB STUDENT", "grade": "DIR LAB", "report": "DIR"}.items():
        with pytest.raises(SystemExit):
            main([command])
        assert f"are required: {', '.join(words.split())}" in capsys.readouterr().err


def test_without_a_command_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr().err
    assert all(f"\n    {command.name}" in said for command in COMMANDS)


@pytest.mark.slow
def test_a_student_who_handed_in_nothing_is_a_misspelled_one(course: Course, capsys) -> None:
    said = refused(capsys, "grade", course.root, "00", "--student", "ada")
    assert f'nobody called "ada" has handed in {LAB}: nobody has yet' in said
    for student in ("ada", "bob", "cleo"):
        submit(course, student)
    requests = (["grade", "--student", "adda"], ["explain", "adda"], ["regrade", "adda", "--reason", "typed wrongly"])
    for command, *words in requests:
        said = refused(capsys, command, course.root, "00", *words)
        assert f'nobody called "adda" has handed in {LAB}: there are: ada, …' in said
    assert not (course.root / ".grading" / "log.jsonl").exists()
    assert 'called "adda"' in refused(capsys, "audit", course.root, "--student", "adda")


@pytest.mark.slow
def test_feedback_without_a_grade_says_what_comes_first(course: Course, capsys) -> None:
    assert "collect submissions, then python -m grading grade" in refused(capsys, "feedback", course.root, "00")
    submit(course, "ada")
    assert f"{LAB} to make a page of: python -m grading grade" in refused(capsys, "feedback", course.root, "00")


@pytest.mark.slow
@pytest.mark.parametrize("text", ROSTERS)
def test_a_roster_that_cannot_be_used(course: Course, tmp_path: Path, text: str, capsys) -> None:
    (tmp_path / "class.csv").write_text(text)
    submit(course, "ada")
    words = ("collect", course.root, "00", "--folder", course.root / "submitted", "--roster", tmp_path / "class.csv")
    assert ROSTERS[text] in refused(capsys, *words)


@pytest.mark.slow
def test_an_empty_folder_is_no_collection(course: Course, tmp_path: Path, capsys) -> None:
    (tmp_path / "inbox" / "ada").mkdir(parents=True)
    said = refused(capsys, "collect", course.root, "00", "--folder", tmp_path / "inbox")
    assert f"there is nothing in inbox: give what holds the submissions of {LAB}" in said


@pytest.mark.slow
def test_notebooks_of_other_labs_are_counted_and_not_listed(course: Course, tmp_path: Path, capsys) -> None:
    other = course.root / "source" / "01_other" / "01_other.ipynb"
    other.parent.mkdir()
    other.write_bytes(course.source(LAB).read_bytes())
    for student in ("ada", "bob"):
        source = submit(course, student)
        for name in (LAB, "01_other", "scratch"):
            path = tmp_path / "inbox" / student / f"{name}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read_bytes())
    assert main(["collect", str(course.root), "00", "--folder", str(tmp_path / "inbox"), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "passed over 2 notebooks of other labs\n" in said and "01_other" not in said
    assert "passed over 'ada/scratch.ipynb'" in said and "passed over 'bob/scratch.ipynb'" in said


@pytest.mark.slow
def test_a_damaged_gradebook_is_named_and_what_was_graded_comes_back(course: Course, capsys) -> None:
    submit(course, "ada")
    assert main(["grade", str(course.root), "00"]) == 0
    gradebook = course.root / "gradebook.db"
    whole = gradebook.read_bytes()
    torn = whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2)
    for damaged in (b"no database " * 400, torn):
        gradebook.write_bytes(damaged)
        for words in (["report"], ["audit"], ["export"], ["grade", "00"]):
            said = refused(capsys, words[0], course.root, *words[1:])
            assert f"the gradebook sqlite:///{gradebook} is damaged (" in said
            assert "then release and grade again" in said
    gradebook.rename(course.root / "damaged.db")
    assert main(["release", str(course.root), "00", "--as-it-is"]) == 0
    assert main(["grade", str(course.root), "00"]) == 0
    assert main(["audit", str(course.root)]) == 0
    assert "grades: 1 of 1 agree with the log" in capsys.readouterr().out


@pytest.mark.slow
def test_an_exchange_that_is_not_there(tmp_path: Path, capsys) -> None:
    root = tmp_path / "nowhere" / "exchange"
    course = make_course(tmp_path / "course", f"\nc.Exchange.root = {str(root)!r}\n")
    said = refused(capsys, "collect", course.root, "00", "--exchange")
    assert f"the exchange, {root}, is not there: mend that, or name another one in {course.config}: " in said


@pytest.mark.slow
@pytest.mark.parametrize("line", ["c.Exchange.root = ", "c.Exchange.root = shared"])
def test_a_configuration_that_does_not_run(course: Course, line: str, capsys) -> None:
    course.config.write_text(f"{course.config.read_text()}\n{line}\n")
    said = refused(capsys, "release", course.root, "00", "--as-it-is")
    assert str(course.config) in said and "correct the file" in said
    assert "Error: " in said
