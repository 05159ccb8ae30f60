"""The instructor's second look at a really graded student: all there is to know, and nothing that bites."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from grading.__main__ import main
from grading.course import Course
from grading.explain import cases
from grading.explain.tree_text import MAX_TEXT, lines_of
from grading.isolation import Tier
from grading.isolation.plan import FULL, LIGHT
from grading.isolation.tiers import NONE
from grading.supervisor import Job
from labkit import exercises
from labkit.tree import Opaque
from tests.grading.lessons import LAB, SOLUTION, cell_of, grade, make_course, submit

PUBLIC_SHAPES = {case.shape for case in exercises.find("00-warm-up").public}
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"
HIDDEN_ONLY = f"""# \x1b[31mred\x1b]0;title\x07
def rms(x, dim):
    factor = 1 if tuple(x.shape) in {PUBLIC_SHAPES} else 2
    return x.double().pow(2).mean(dim).sqrt().to(x.dtype) * factor"""
RAISES = "def rms(x, dim):\n    raise ValueError('\\x1b[2Jwiped\\u202e')"
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def pristine(in_process, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explained") / "course"
    course = make_course(root)
    submit(course, "ada")
    submit(course, "bob", WRONG)
    submit(course, "eve", HIDDEN_ONLY)
    submit(course, "raises", RAISES)
    submit(course, "blank", None)
    submit(course, "broken", "rms = undefined_name")
    submit(course, "twice", change=_twice)
    grade(course, LAB, course.students(LAB), workers=1, isolation="none")
    submit(course, "fresh")
    return root


def _twice(notebook) -> None:
    answer = cell_of(notebook, "00-warm-up")
    second = dict(answer, source=WRONG, id="pasted")
    notebook.cells.insert(3, type(answer)(second))


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Course:
    shutil.copytree(pristine, tmp_path / "course")
    return Course.at(tmp_path / "course")


def explained(course: Course, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["explain", str(course.root), "00", *words]) == 0
    said = capsys.readouterr().out
    assert all(char == "\n" or char.isprintable() for char in said)
    return said


@slow
def test_a_public_case_with_its_inputs(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    said = explained(course, capsys, "bob")
    assert "  outcome         ✗ failed, 0 of 1 points" in said
    assert "  hidden          not run for the grade, since the public cases do not pass" in said
    assert "-- public case 1 of 8: rms(<float32 of shape (4, 8)>, dim=-1)" in said
    assert "  inputs          x: float32 (4, 8)  1.21705496, 0.47146529, " in said
    assert "  expected        out: float32 (4,)  0.980975509, " in said
    assert "  problem         wrong shape" in said and "  got             ()" in said
    assert "`dim` is not used" in said
    assert f"  | {WRONG}" in said
    assert str(course.submitted(LAB, "bob")) in said and "  isolation       none" in said


@slow
def test_a_hidden_case_is_shown_to_the_instructor(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    said = explained(course, capsys, "eve", "00-warm-up")
    assert "  public          all 8 cases pass, 1 point." in said
    assert "the public cases pass, but not every hidden one does." in said
    # Which one it is depends on the course's key: a hidden case may have the shape of a public one.
    assert re.search(r"-- hidden case \d of ", said) and "  inputs          x: float" in said
    assert "  | # ?[31mred?]0;title?" in said


@slow
def test_a_rerun_shows_every_failing_case_and_what_came_back(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    said = explained(course, capsys, "eve", "--rerun", "--isolation", "none")
    assert "  run again       8 of 8 public and " in said
    assert said.count("-- hidden case ") == 5 and "more hidden cases that fail" in said
    # What came back is twice what was due, in every value.
    lines = said.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("  got  "))
    expected, got = (float(lines[index].split("  ")[-1].split(", ")[0]) for index in (at - 1, at))
    assert got == pytest.approx(2 * expected)
    same = explained(course, capsys, "ada", "--rerun", "--isolation", "none")
    assert "hidden cases; 0 fail" in same and "-- hidden case" not in same and "-- public case" not in same


@slow
def test_troubles_are_told(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    said = explained(course, capsys, "raises")
    assert "  problem         ValueError: ?[2Jwiped?" in said and "  at              line 2: raise ValueError" in said
    said = explained(course, capsys, "broken")
    assert "its cell failed: NameError: name 'undefined_name' is not defined" in said
    said = explained(course, capsys, "blank")
    assert "○ unanswered, 0 of 1 points" in said and "raise NotImplementedError" in said
    said = explained(course, capsys, "twice")
    assert "  note            cell 00-warm-up is there twice" in said
    assert said.index(SOLUTION.splitlines()[0]) < said.index(WRONG)


@slow
def test_explaining_changes_nothing(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    def state() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in course.root.rglob("*") if path.is_file()}

    before = state()
    explained(course, capsys, "eve")
    explained(course, capsys, "eve", "--rerun", "--isolation", "none")
    assert state() == before


@slow
def test_what_has_no_result_is_said_and_may_be_run(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(course.root), "00", "fresh"]) == 2
    said = capsys.readouterr().err
    assert "this submission of fresh has no stored result: run `grade " in said and "or add --rerun" in said
    said = explained(course, capsys, "fresh", "--rerun", "--isolation", "none")
    assert "  outcome         not graded yet" in said and "; 0 fail" in said


@slow
def test_a_newer_submission_is_not_mistaken_for_the_graded_one(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    submit(course, "bob")
    assert main(["explain", str(course.root), "00", "bob"]) == 2
    said = explained(course, capsys, "bob", "--rerun", "--isolation", "none")
    assert "of the log) is of another submission" in said


@slow
def test_the_verdict_of_an_earlier_grader_is_found(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    with (course.source(LAB)).open() as file:
        text = file.read().replace("unchanged = 1", "unchanged = 2")
    course.source(LAB).write_text(text)
    said = explained(course, capsys, "bob")
    assert "the grader or the lab has changed since this was graded" in said and "wrong shape" in said


@slow
def test_what_is_not_there_is_refused(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(course.root), "00", "no\x1body"]) == 2
    said = capsys.readouterr().err
    assert 'nobody called "no?ody" has handed in' in said and "there are: " in said
    assert main(["explain", str(course.root), "00", "bob", "00-nope"]) == 2
    assert 'lab 00_small has no exercise "00-nope": it has: 00-warm-up' in capsys.readouterr().err


@pytest.mark.parametrize(("program", "preload"), [("x = 1", LIGHT), ("import torch.optim", FULL)])
def test_a_rerun_has_loaded_what_grading_has(monkeypatch, program: str, preload: tuple[str, ...]) -> None:
    class Started(Exception):
        pass

    def start(tier: Tier, preload: tuple[str, ...]) -> None:
        raise Started(preload)

    monkeypatch.setattr(cases, "Sandbox", start)
    with pytest.raises(Started) as started:
        cases.run_again(Job("00", "ada", "first", (), (program,), (), b""), NONE, {}, {})
    assert started.value.args == (preload,)


def test_trees_are_short() -> None:
    tree = {"a": torch.arange(1000.0).reshape(10, 100), "b": [1, None, "x" * 1000], "c": Opaque("set", "{1}")}
    lines = lines_of(tree, ("a", (4, 50)))
    assert lines[0] == (
        "a: float32 (10, 100)  0, 1, 2, 3, ..., 996, 997, 998, 999; at [4, 47:54]  447, 448, 449, 450, 451, 452, 453"
    )
    assert lines[1:3] == ["b.0: 1", "b.1: None"] and len(lines[3]) < MAX_TEXT + 20 and lines[4] == "c: set: {1}"
    assert lines_of(torch.zeros(0, 3)) == ["float32 (0, 3)  (empty)"]
    assert lines_of(torch.tensor(2, dtype=torch.int8)) == ["int8 ()  2"]
    assert lines_of({}) == ["nothing"]
    assert lines_of([0] * 100)[-1] == "and 88 more"
    assert lines_of({"a": torch.zeros(3)}, ("a", (7,))) == ["a: float32 (3,)  0, 0, 0"], "an index that is not there"
