"""`python -m grading try`: the box that students see, and on how many draws an answer passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from grading.__main__ import main
from grading.demo.examples import example
from labkit.check.text import as_text
from tests.exercises.harness import public_verdict


def test_the_solution_passes_everywhere(capsys) -> None:
    assert main(["try", "00-warm-up", "--draws", "3"]) == 0
    said = capsys.readouterr().out
    assert "✓ 00-warm-up: all 8 cases pass" in said and said.endswith("hidden cases: 3 of 3 draws pass\n")


def test_a_wrong_answer_gets_the_very_box_that_a_student_sees(tmp_path: Path, capsys) -> None:
    wrong = example("wrong", "02-blocked-sum/a_list_of_converted_blocks")
    (tmp_path / "mine.py").write_text(wrong.source)
    assert main(["try", "02-blocked-sum", str(tmp_path / "mine.py"), "--draws", "1"]) == 1
    said = capsys.readouterr().out
    assert as_text(public_verdict(wrong.exercise, wrong.source)) in said
    assert "hidden cases: 0 of 1 draws pass\nthe first that fails, draw 1:\n" in said


def test_an_answer_that_fails_on_some_draws_is_counted(tmp_path: Path, capsys) -> None:
    """One fixed draw, as the tests of answers make it, can pass by luck."""
    (tmp_path / "mine.py").write_text(
        "def rms(x, dim):\n"
        "    bad = x.numel() > 1 and x.flatten()[0] > 2.3\n"
        "    return x.float().square().mean(dim).sqrt().type_as(x) + 5 * bool(bad)\n"
    )
    assert main(["try", "00-warm-up", str(tmp_path / "mine.py"), "--draws", "20"]) == 1
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("hidden cases: ")]
    assert 0 < int(line.split()[2]) < 20, line
    assert "the first that fails, draw " in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["77-nothing"], 'there is no exercise "77-nothing"'),
        (["00-warm-up", "nowhere.py"], "nowhere.py cannot be read"),
    ],
)
def test_what_is_not_there_is_said(words: list[str], said: str, capsys) -> None:
    assert main(["try", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_cell_that_raises_is_named(tmp_path: Path, capsys) -> None:
    (tmp_path / "mine.py").write_text("1 / 0\n")
    assert main(["try", "00-warm-up", str(tmp_path / "mine.py")]) == 2
    assert "mine.py: ZeroDivisionError: division by zero" in capsys.readouterr().err
