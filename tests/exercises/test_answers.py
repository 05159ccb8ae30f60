"""Every exercise grades its grader: solutions pass, wrong answers fail with their own hint, unusual ones pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from grading.hidden import hidden_of
from labkit import exercises
from labkit.check import examine
from labkit.check.text import MAX_LINES, WIDTH, as_text
from labkit.oracles import oracle_of
from tests.exercises.harness import TESTS, answer_files, answers_in, hidden_verdict, public_verdict, solution_of

ALL = list(exercises.everything())


USE_UP_THEIR_TIME = ("the-lectures-loop", "the-lectures-loop-on-a-sorted-list", "sorts-again-each-turn")
"""Wrong answers that are stopped by the CPU limit, which takes seconds."""


TAKE_THEIR_TIME = tuple(name for name in ALL if name == "15-launch" or "compiled" in exercises.find(name).meters)
"""Exercises whose check starts processes from nothing or compiles kernels, which takes seconds each time."""


N_QUICK = 6
"""How many wrong answers of an exercise the fast lane tries. All of them take minutes."""


def _cases(folder: str) -> list:
    cases, n_of = [], Counter()
    for path in answer_files(folder):
        n_of[exercise_id := path.stem.split("__")[0]] += 1
        takes_time = path.stem.startswith(TAKE_THEIR_TIME) or path.stem.endswith(USE_UP_THEIR_TIME)
        is_more = folder == "wrong" and n_of[exercise_id] > N_QUICK
        cases.append(pytest.param(path, id=path.stem, marks=_marks(takes_time or is_more)))
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
    right = [path.read_text() for path in answer_files("right") if path.stem.startswith(f"{exercise_id}__")]
    for source in (solution_of(exercise_id), *right):
        verdict = hidden_verdict(exercise_id, source, watched=True)
        assert verdict.outcome == "passed", as_text(verdict)


VERDICTS = {"public": public_verdict, "hidden": hidden_verdict}
on_each_verdict = pytest.mark.parametrize("verdict_of", ["public", pytest.param("hidden", marks=pytest.mark.slow)])
"""The hidden cases of hundreds of answers take minutes, so they are left out of the fast lane."""


@on_each_verdict
@pytest.mark.parametrize("path", _cases("right"))
def test_an_unusual_right_answer_gets_full_marks(path, verdict_of: str) -> None:
    verdict = VERDICTS[verdict_of](path.stem.split("__")[0], path.read_text())
    assert verdict.outcome == "passed", as_text(verdict)


@on_each_verdict
@pytest.mark.parametrize("path", _cases("wrong"))
def test_a_wrong_answer_fails_with_its_own_hint(path, verdict_of: str) -> None:
    """The first line of the file is a comment that the hint must contain, for the public and the hidden cases."""
    source = path.read_text()
    expected = source.splitlines()[0].removeprefix("#").strip()
    verdict = VERDICTS[verdict_of](path.stem.split("__")[0], source)
    text = as_text(verdict)
    assert verdict.score == 0, text
    assert expected in (verdict.hint or ""), text
    assert len(text.splitlines()) <= MAX_LINES
    assert max(map(len, text.splitlines())) <= WIDTH


def test_the_readme_shows_what_a_check_says() -> None:
    (wrong,) = [path for path in answer_files("wrong") if path.stem == "02-blocked-sum__a-list-of-converted-blocks"]
    said = as_text(public_verdict("02-blocked-sum", wrong.read_text()))
    assert f"```\n{said}\n```" in (TESTS.parent / "README.md").read_text()


@pytest.mark.parametrize("exercise_id", ALL)
def test_every_exercise_has_two_wrong_answers(exercise_id: str) -> None:
    names = [path.stem for path in answer_files("wrong") if path.stem.startswith(f"{exercise_id}__")]
    assert len(names) >= 2, f"tests/wrong has only {names}"


@pytest.mark.slow
@pytest.mark.parametrize("exercise_id", ALL)
def test_a_check_without_its_teeth_lets_a_wrong_answer_pass(exercise_id: str) -> None:
    """The control: it is the oracle that rejects the wrong answers, not the driver or an accident on the way."""
    toothless = replace(oracle_of(exercise_id), expect=None, judge=(), judge_all=(), budgets=())
    exercise = replace(exercises.find(exercise_id), forbids=())
    wrong = [path for path in answer_files("wrong") if path.stem.startswith(f"{exercise_id}__")]
    tried = [path for path in wrong if not path.stem.endswith(USE_UP_THEIR_TIME)][:6]
    passed: list[str] = []
    for path in tried:
        if examine(exercise, toothless, answers_in(exercise_id, path.read_text())).passed:
            passed.append(path.stem)
        if 2 * len(passed) >= len(tried):
            return
    pytest.fail(f"less than half: only {passed} of {[path.stem for path in tried]}")
