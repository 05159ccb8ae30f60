"""Every exercise grades its grader: solutions pass, wrong answers fail with their own hint, unusual ones pass."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from grading.demo.examples import Example, example, examples
from grading.hidden import hidden_of
from labkit import exercises
from labkit.check import examine
from labkit.check.text import MAX_LINES, WIDTH, as_text
from labkit.oracles import oracle_of
from tests.exercises.harness import TESTS, answers_in, hidden_verdict, public_verdict, solution_of

ALL = list(exercises.everything())


USE_UP_THEIR_TIME = ("the_lectures_loop", "the_lectures_loop_on_a_sorted_list", "sorts_again_each_turn")
"""Wrong answers that are stopped by the CPU limit, which takes seconds."""


TAKE_THEIR_TIME = tuple(name for name in ALL if name == "15-launch" or "compiled" in exercises.find(name).meters)
"""Exercises whose check starts processes from nothing or compiles kernels, which takes seconds each time."""


N_QUICK = 6
"""How many wrong answers of an exercise the fast lane tries. All of them take minutes."""


def _cases(folder: str) -> list:
    cases = []
    for exercise_id in ALL:
        for n_before, known in enumerate(examples(folder, exercise_id)):
            takes_time = exercise_id in TAKE_THEIR_TIME or known.name in USE_UP_THEIR_TIME
            is_more = folder == "wrong" and n_before >= N_QUICK
            name = f"{exercise_id}/{known.name}"
            cases.append(pytest.param(known, id=name, marks=_marks(takes_time or is_more)))
    return cases


def _marks(is_slow: bool) -> list:
    return [pytest.mark.slow] if is_slow else []


@pytest.mark.parametrize("exercise_id", [pytest.param(name, marks=_marks(name in TAKE_THEIR_TIME)) for name in ALL])
def test_the_solution_gets_full_marks(exercise_id: str) -> None:
    source = solution_of(exercise_id)
    for verdict in (public_verdict(exercise_id, source), hidden_verdict(exercise_id, source)):
        assert verdict.outcome == "passed", as_text(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("exercise_id", [name for name in ALL if hidden_of(name).watched(Random(0))])
def test_right_answers_pass_the_large_cases_as_well(exercise_id: str) -> None:
    right = [known.source for known in examples("right", exercise_id)]
    for source in (solution_of(exercise_id), *right):
        verdict = hidden_verdict(exercise_id, source, watched=True)
        assert verdict.outcome == "passed", as_text(verdict)


VERDICTS = {"public": public_verdict, "hidden": hidden_verdict}
on_each_verdict = pytest.mark.parametrize("verdict_of", ["public", pytest.param("hidden", marks=pytest.mark.slow)])
"""The hidden cases of hundreds of answers take minutes, so they are left out of the fast lane."""


@on_each_verdict
@pytest.mark.parametrize("right", _cases("right"))
def test_an_unusual_right_answer_gets_full_marks(right: Example, verdict_of: str) -> None:
    verdict = VERDICTS[verdict_of](right.exercise, right.source)
    assert verdict.outcome == "passed", as_text(verdict)


@on_each_verdict
@pytest.mark.parametrize("wrong", _cases("wrong"))
def test_a_wrong_answer_fails_with_its_own_hint(wrong: Example, verdict_of: str) -> None:
    """The first line of the file names a part of its hint, for the public and the hidden cases."""
    verdict = VERDICTS[verdict_of](wrong.exercise, wrong.source)
    text = as_text(verdict)
    assert verdict.score == 0, text
    assert wrong.hint in (verdict.hint or ""), text
    assert len(text.splitlines()) <= MAX_LINES
    assert max(map(len, text.splitlines())) <= WIDTH


def test_the_readme_shows_what_a_check_says() -> None:
    wrong = example("wrong", "02-blocked-sum/a_list_of_converted_blocks")
    said = as_text(public_verdict(wrong.exercise, wrong.source))
    assert f"```\n{said}\n```" in (TESTS.parent / "README.md").read_text()


@pytest.mark.parametrize("exercise_id", ALL)
def test_every_exercise_has_two_wrong_answers(exercise_id: str) -> None:
    names = [wrong.name for wrong in examples("wrong", exercise_id)]
    assert len(names) >= 2, f"tests/wrong/{exercise_id} has only {names}"


@pytest.mark.slow
@pytest.mark.parametrize("exercise_id", ALL)
def test_a_check_without_its_teeth_lets_a_wrong_answer_pass(exercise_id: str) -> None:
    """The control: it is the oracle that rejects the wrong answers, not the driver or an accident on the way."""
    toothless = replace(oracle_of(exercise_id), expect=None, judge=(), judge_all=(), budgets=())
    exercise = replace(exercises.find(exercise_id), forbids=())
    tried = [wrong for wrong in examples("wrong", exercise_id) if wrong.name not in USE_UP_THEIR_TIME][:6]
    passed: list[str] = []
    for wrong in tried:
        if examine(exercise, toothless, answers_in(exercise_id, wrong.source)).passed:
            passed.append(wrong.name)
        if 2 * len(passed) >= len(tried):
            return
    pytest.fail(f"less than half: only {passed} of {[wrong.name for wrong in tried]}")
