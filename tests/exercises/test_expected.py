"""The controls of the tests of answers: what they should find is found, and what answers share spoils no verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grading.demo.examples import example, examples
from labkit import exercises
from labkit.spec import Hint
from tests.exercises.expected import expect_full_marks, expect_own_hints
from tests.exercises.harness import PATIENCE_S, SECRET, CaseSet, solution_of


def test_a_slip_in_the_condition_of_a_hint_is_told() -> None:
    """The control: misspelt names fail the test of answers; an attribute that an answer's value lacks does not."""
    wrong = example("wrong", "00-warm-up/" + examples("wrong", "00-warm-up")[0].name)
    for when, said in (
        (lambda run: run.gott, "'CaseRun' object has no attribute 'gott'"),
        (lambda run: run.tree["x"].sqare(), "'Tensor' object has no attribute 'sqare'"),
        (lambda run: nowhere, "name 'nowhere' is not defined"),
    ):
        with pytest.raises(pytest.fail.Exception, match="the condition of the hint") as failed:
            expect_own_hints(with_hint("00-warm-up", Hint(when, "Squared.")), [wrong])
        assert said in str(failed.value)
    expect_own_hints(with_hint("00-warm-up", Hint(lambda run: None.shape, "Squared.")), [wrong])


def test_an_answer_has_time_to_wait_for_a_busy_machine() -> None:
    for cases in (CaseSet("00-warm-up"), CaseSet("00-warm-up", SECRET), CaseSet("15-launch")):
        of_the_exercise = exercises.find(cases.exercise.id).run
        assert cases.exercise.run.wall_s == max(PATIENCE_S, of_the_exercise.wall_s)
        assert replace(cases.exercise.run, wall_s=of_the_exercise.wall_s) == of_the_exercise


def with_hint(exercise_id: str, hint: Hint) -> CaseSet:
    """Its public cases, judged with one more hint before the others."""
    cases = CaseSet(exercise_id)
    cases.oracle = replace(cases.oracle, diagnose=(cases._listening(hint), *cases.oracle.diagnose))
    return cases


def test_what_fails_is_listed_together() -> None:
    """The control: right answers among the wrong ones, a wrong hint, and a cell that raises."""
    right, (wrong, *_) = solution_of("02-blocked-sum"), examples("wrong", "02-blocked-sum")
    given = [wrong, replace(wrong, name="right", source=right), replace(wrong, name="another", hint="no such hint")]
    with pytest.raises(pytest.fail.Exception) as failed:
        expect_own_hints(CaseSet("02-blocked-sum"), [*given, replace(wrong, name="broken", source="1 / 0")])
    text = str(failed.value)
    assert text.startswith("3 of 4 answers to 02-blocked-sum"), text
    for name in ("right", "another", "broken"):
        assert f"\n{name}: " in text
    assert "expected a hint with 'no such hint'" in text and "ZeroDivisionError" in text
    with pytest.raises(pytest.fail.Exception, match="expected full marks"):
        expect_full_marks(CaseSet("02-blocked-sum"), [wrong])


def test_shared_inputs_and_expectations_change_no_verdict() -> None:
    """An answer that writes into its inputs spoils them for none of the others."""
    spoils = "def rms(x, dim):\n    x.zero_()\n    return x.sum(dim)\n"
    for cases in (CaseSet("00-warm-up"), CaseSet("00-warm-up", SECRET)):
        before = cases.verdict(cases.runs(solution_of("00-warm-up")))
        assert cases.verdict(cases.runs(spoils)).score == 0
        assert cases.verdict(cases.runs(solution_of("00-warm-up"))) == before and before.passed
