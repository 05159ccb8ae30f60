"""`python -m grading try`: the box that students see, and on how many draws an answer passes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.demo.examples import Example, example
from grading.tryout import known
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


EXPORTED = """
FACTOR = 1.0


class Rms(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.float().square().mul(FACTOR).mean(self.dim).sqrt().type_as(x)


PROGRAMS = {}


def rms(x, dim):
    key = (x.shape, x.dtype, dim)
    if key not in PROGRAMS:
        PROGRAMS[key] = torch.export.export(Rms(dim), (x,), strict=True).module()
    return PROGRAMS[key](x)
"""


@pytest.mark.slow
def test_a_function_finds_its_globals_in_main_as_in_a_notebook(tmp_path: Path, capsys) -> None:
    """Strict export looks them up by the module's name. What an answer before it has left there is in nobody's way."""
    before = sys.modules["__main__"]
    for factor, passes in (("4.0", False), ("1.0", True)):
        (tmp_path / "mine.py").write_text(EXPORTED.replace("1.0", factor))
        assert main(["try", "00-warm-up", str(tmp_path / "mine.py"), "--draws", "1"]) == (0 if passes else 1)
        assert f"hidden cases: {int(passes)} of 1 draws pass" in capsys.readouterr().out
    assert sys.modules["__main__"] is before


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
        (["00-warm-up", "mine.py", "--known"], "leave out mine.py, or --known"),
        (["00-warm-up", "--draws", "0"], "give --draws 1 or more"),
    ],
)
def test_what_is_not_there_is_said(words: list[str], said: str, capsys) -> None:
    assert main(["try", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_cell_that_raises_is_named(tmp_path: Path, capsys) -> None:
    (tmp_path / "mine.py").write_text("1 / 0\n")
    assert main(["try", "00-warm-up", str(tmp_path / "mine.py")]) == 2
    assert "mine.py: ZeroDivisionError: division by zero" in capsys.readouterr().err


def test_known_answers_are_judged_on_each_draw(capsys) -> None:
    n_answers = len(known.known_answers("00-warm-up"))
    assert n_answers > 3
    assert main(["try", "00-warm-up", "--known", "--draws", "2"]) == 0
    said = capsys.readouterr().out
    assert said == f"{n_answers} known answers on 2 draws: 0 times judged otherwise than their files say\n"


def test_known_answers_that_a_draw_judges_otherwise_are_named(monkeypatch, capsys) -> None:
    """The control: a right answer among the wrong, a wrong hint, a wrong answer among the right, a cell that raises."""
    right, wrong = known.known_answers("00-warm-up")[0], known.known_answers("00-warm-up")[-1]
    given = (
        Example("00-warm-up", "passes", right.source, hint="mean"),
        Example("00-warm-up", "is_told_another", wrong.source, hint="no such hint"),
        Example("00-warm-up", "fails", wrong.source),
        Example("00-warm-up", "raises", "1 / 0"),
        right,
        wrong,
    )
    monkeypatch.setattr(known, "known_answers", lambda name: given)
    assert main(["try", "00-warm-up", "--known", "--draws", "2"]) == 1
    said = capsys.readouterr().out
    for draw in (1, 2):
        assert f"passes, draw {draw}: expected no points\n" in said
        assert f"is_told_another, draw {draw}: expected a hint with 'no such hint'\n" in said
        assert f"fails, draw {draw}: expected full marks\n" in said
        assert f"raises, draw {draw}: its cell or the judge raised ZeroDivisionError: division by zero\n" in said
    assert "on 2 draws: 8 times judged otherwise than their files say\n" in said
