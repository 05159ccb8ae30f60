"""`check` and `progress`, as a notebook calls them: what they show, what they refuse, and what they run again."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from labkit.check.api import CheckFailed, VerdictView, check, progress
from labkit.exercises import UnknownExercise
from labkit.spec import Answer, Oracle
from tests.exercises.small import DOUBLE, ORACLE, examined


def test_check_raises_with_the_verdict_and_shows_one_line_of_it(capsys, monkeypatch) -> None:
    with pytest.raises(CheckFailed) as caught:
        check("00-warm-up", lambda x, dim: x.float().square().mean(dim).to(x.dtype))
    assert caught.value.verdict.outcome == "failed"
    (line,) = caught.value._render_traceback_()
    assert line.startswith("CheckFailed: 00-warm-up: ")
    assert line.endswith("this is the first.")
    monkeypatch.setenv("NBGRADER_VALIDATING", "1")
    assert caught.value._render_traceback_()[0].endswith("the root is missing.")
    assert "the root is missing" in capsys.readouterr().out


def test_check_wants_its_answers() -> None:
    with pytest.raises(TypeError, match=r'write check\("00-warm-up", rms\)'):
        check("00-warm-up")


def test_where_the_truth_is_absent_nothing_is_judged(monkeypatch, capsys) -> None:
    # By sys.modules, because `labkit.check` is the function.
    monkeypatch.setattr(sys.modules["labkit.check.api"], "expectations_present", lambda: False)
    check("00-warm-up", lambda x, dim: None)
    progress("00", {})
    assert capsys.readouterr().out == "00-warm-up: checked by the grader\nlab 00: checked by the grader\n"


def test_progress(capsys) -> None:
    progress("00", {"rms": lambda x, dim: x.float().square().mean(dim).sqrt().to(x.dtype)})
    assert capsys.readouterr().out.splitlines()[0].split() == ["✓", "00-warm-up", "1", "of", "1"]
    progress("00", {})
    assert capsys.readouterr().out.splitlines()[0].split() == ["✗", "00-warm-up", "0", "of", "1"]


def test_progress_adds_up_core_and_optional_points_apart(monkeypatch, capsys) -> None:
    core = replace(DOUBLE, id="90-core", points=4)
    bonus = replace(DOUBLE, id="90-bonus", points=0.4, optional=True)
    oracle = Oracle("90-core", expect=lambda run: {"out": run.tree["x"] * 2})
    monkeypatch.setattr("labkit.exercises.of_lab", lambda lab: {"90-core": core, "90-bonus": bonus})
    monkeypatch.setattr("labkit.oracles.oracle_of", lambda name: oracle)
    progress("90", {"double": lambda x: x * 2})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][1:] == ["90-core", "4", "of", "4"]
    assert lines[1][1:] == ["90-bonus", "0.4", "of", "0.4", "(optional)"]
    assert " ".join(lines[2]) == "public cases, in all 4 of 4 points, and 0.4 of 0.4 for what is optional"


def test_progress_starts_no_script_again_that_has_passed(monkeypatch, capsys) -> None:
    started = []

    def drive(answers, case, tree, stage):
        started.append(answers.script)
        return {"out": answers.script == "good"}

    exercise = replace(DOUBLE, id="90-script", answers=(Answer("script", kind="text"),), drive=drive)
    exercise = replace(exercise, public=DOUBLE.public[:1], inputs=lambda case, generator: {})
    oracle = Oracle("90-script", expect=lambda run: {"out": True})
    monkeypatch.setattr("labkit.exercises.find", lambda name: exercise)
    monkeypatch.setattr("labkit.exercises.of_lab", lambda lab: {exercise.id: exercise})
    monkeypatch.setattr("labkit.oracles.oracle_of", lambda name: oracle)
    with pytest.raises(CheckFailed):
        check("90-script", "bad")
    progress("90", {"script": "bad"})
    check("90-script", "good")
    progress("90", {"script": "good"})
    progress("90", {"script": "good "})
    assert started == ["bad", "bad", "good", "good "]
    shown = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if " of " in line and "90-" in line]
    assert shown == [["✗", "90-script", "0"], ["✓", "90-script", "2"], ["✗", "90-script", "0"]]


def test_a_verdict_shows_as_text_and_as_html() -> None:
    verdict = examined("double = lambda x: x", ORACLE)
    assert repr(VerdictView(verdict)).startswith("✗ 90-double")
    assert VerdictView(verdict)._repr_html_().startswith('<div class="labkit-verdict ')


def test_the_id_comes_first() -> None:
    with pytest.raises(TypeError, match="the exercise's id comes first"):
        check(lambda x, dim: x, "00-warm-up")


def test_progress_names_the_labs_that_there_are() -> None:
    with pytest.raises(UnknownExercise, match='there is no lab "7"; known here: 00, '):
        progress("7", {})
