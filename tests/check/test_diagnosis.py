"""A hint is shown only where every failing case bears it out; where none does, the oracle's fact is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.spec import CANNOT_TELL, Answer, Budget, Case, Exercise, Hint, Observation, Oracle, Rivals


@dataclass(frozen=True)
class Number(Case):
    x: int = 2


EXERCISE = Exercise(
    id="99-double",
    title="",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("double"),),
    public=(Number(),),
    inputs=lambda case, gen: {},
    drive=lambda ans, case, tree, stage: {},
)
SQUARE = Hint(lambda run: run.got["out"] == run.case.x**2, "This is the square.")
SAME = Hint(lambda run: run.got["out"] == run.case.x, "This is x itself.")
SMALL = Hint(lambda run: run.got["out"] < run.expected["out"], "Too small.")


def verdict(got: dict[int, object], *hints: Hint | Rivals, **more) -> Verdict:
    """On answers to "double x", by x. What is right is 2 x."""
    oracle = Oracle("99-double", expect=lambda run: {"out": 2 * run.case.x}, diagnose=hints, **more)
    return judge(
        EXERCISE, oracle, [Observation(Number(x), {}, {"out": out}, {}, {"flops": 9}) for x, out in got.items()]
    )


def test_a_hint_that_every_failing_case_bears_out_is_shown() -> None:
    assert verdict({3: 9, 4: 16}, SQUARE).hint == "This is the square."


def test_cases_that_pass_say_nothing_against_it() -> None:
    """2 x is x squared at 2, so that case passes and cannot contradict."""
    assert verdict({2: 4, 3: 9}, SQUARE).hint == "This is the square."


@pytest.mark.parametrize("later", [17, None])
def test_one_failing_case_that_speaks_against_a_hint_is_enough(later: object) -> None:
    """A value that the hint cannot even read, it does not explain."""
    assert verdict({3: 9, 4: later}, SQUARE).hint is None


def test_the_first_of_several_that_explain_all_is_shown() -> None:
    assert verdict({3: 1, 4: 1}, SQUARE, SMALL).hint == "Too small."
    assert verdict({1: 1, 0.5: 0.25}, SQUARE, SMALL).hint == "This is the square."


def test_a_hint_that_holds_only_later_is_not_shown() -> None:
    assert verdict({3: 7, 4: 16}, SQUARE).hint is None


def test_a_case_that_cannot_tell_is_left_out() -> None:
    def when(run) -> object:
        return CANNOT_TELL if run.case.x < 4 else run.got["out"] == run.case.x**2

    hint = Hint(when, "This is the square.")
    assert verdict({3: 7, 4: 16, 5: 25}, hint).hint == "This is the square."
    assert verdict({3: 7, 4: 16, 5: 26}, hint).hint is None
    assert verdict({2: 5, 3: 7}, hint).hint is None


def test_of_rivals_that_both_explain_all_neither_is_shown() -> None:
    """At 1, x and its square are the same; a more general hint after them still holds."""
    rivals = Rivals((SQUARE, SAME))
    assert verdict({1: 1, 3: 9}, rivals, SMALL).hint == "This is the square."
    assert verdict({1: 1}, rivals).hint is None
    assert verdict({1: 1}, rivals, SMALL).hint == "Too small."


def test_rivals_of_one_text_are_one_mistake() -> None:
    again = Hint(lambda run: run.got["out"] == 1, SQUARE.text)
    assert verdict({1: 1}, Rivals((SQUARE, again))).hint == "This is the square."


def test_where_no_hint_explains_the_fact_is_shown() -> None:
    def off(run) -> str:
        return f"{run.got['out'] - run.expected['out']} too many"

    found = verdict({3: 9, 4: 17}, SQUARE, fact=off)
    assert (found.hint, found.rows[-1]) == (None, ("note", "3 too many"))
    assert verdict({3: 9, 4: 16}, SQUARE, fact=off).rows[-1][0] != "note"
    assert all(label != "note" for label, _ in verdict({3: None}, SQUARE, fact=off).rows)
    assert found.redacted().rows == ()


def test_what_the_form_of_a_result_says_needs_no_diagnosis() -> None:
    assert verdict({3: None, 4: 17}, SQUARE).hint == "The function returned None: is a `return` missing?"


def test_a_budget_keeps_its_own_hint_where_none_explains_it() -> None:
    budget = Budget("flops", 8, "Count again.")
    assert verdict({3: 6}, SQUARE, budgets=(budget,)).hint == "Count again."
    anyhow = Hint(lambda run: run.measured["flops"] == 9, "Nine.")
    assert verdict({3: 6}, anyhow, budgets=(budget,)).hint == "Nine."
    assert (
        verdict({3: 6, 4: 9}, Hint(lambda run: run.got["out"] == 6, "Six."), budgets=(budget,)).hint == "Count again."
    )
