"""Every exercise grades its grader: solutions pass, wrong answers fail with their own hint, unusual ones pass.

One test for all answers of an exercise: they share inputs and expectations, and what fails is listed together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
import torch

from grading.demo.examples import Example, example, examples, paths
from grading.hidden import hidden_of
from labkit import exercises
from labkit.check.text import as_text
from labkit.observe import make_inputs
from labkit.spec import Case, Exercise, Observation, Tree
from labkit.tree import same
from tests.exercises.each import ALL, TAKE_A_SECOND, TIMEOUT_S, TRAIN, each_exercise, in_full
from tests.exercises.expected import expect_full_marks, expect_own_hints
from tests.exercises.harness import SECRET, TESTS, CaseSet, public_verdict, solution_of, stub_of

USE_UP_THEIR_TIME = ("the_lectures_loop", "the_lectures_loop_on_a_sorted_list", "sorts_again_each_turn")
"""Wrong answers that are stopped by the CPU limit, which takes seconds."""
N_WANTED = {"wrong": 2, "right": 1}
"""How many answers of each kind an exercise needs at least."""
N_FIRST = {"public": 16, "hidden": 6}
"""How many wrong answers of an exercise are tried on each set of cases while its lab changes: the others in the part
`answers` alone."""
N_WITHOUT_TEETH = 6
"""How many wrong answers of an exercise are judged by a check without teeth."""
CASES: dict[str, Callable[[str], CaseSet]] = {
    "public": CaseSet,
    "hidden": lambda exercise_id: CaseSet(exercise_id, SECRET),
}
on_each_set = pytest.mark.parametrize("cases", ["public", pytest.param("hidden", marks=pytest.mark.full("answers"))])
"""`make check` tries public cases; `make test` the hidden ones as well, of the labs that it tries in full."""


@each_exercise(slow=TAKE_A_SECOND, trained=TRAIN)
@on_each_set
def test_the_solution_gets_full_marks(exercise_id: str, cases: str) -> None:
    expect_full_marks(CASES[cases](exercise_id), [Example(exercise_id, "solution", solution_of(exercise_id))])


@each_exercise(slow=TAKE_A_SECOND)
def test_inputs_come_from_the_generator_alone(exercise_id: str) -> None:
    """The same seed gives the same inputs, whatever the global generators were set to."""
    if strays := drawn_elsewhere(exercises.find(exercise_id)):
        pytest.fail(f"inputs draws from a global generator, not from the one it is handed: {strays[0]}", pytrace=False)


def drawn_elsewhere(exercise: Exercise) -> list[Case]:
    """The public cases whose inputs follow a global generator."""

    def drawn(case: Case, of_all: int) -> Tree:
        with torch.random.fork_rng(devices=[]):
            state = random.getstate()
            torch.manual_seed(of_all)
            random.seed(of_all)
            try:
                return make_inputs(exercise, case, 1)
            finally:
                random.setstate(state)

    return [case for case in exercise.public if not same(drawn(case, 1), drawn(case, 2))]


def test_inputs_from_a_global_generator_are_seen() -> None:
    """The control."""
    exercise = exercises.find("00-warm-up")
    for draw in (lambda: torch.rand(3), random.random):
        astray = replace(exercise, inputs=lambda case, generator, draw=draw: {"x": draw()})
        assert drawn_elsewhere(astray) == list(exercise.public)


@each_exercise()
def test_the_blank_cell_is_not_answered_yet(exercise_id: str) -> None:
    verdict = public_verdict(exercise_id, stub_of(exercise_id))
    assert (verdict.outcome, verdict.score) == ("unanswered", 0), as_text(verdict)
    assert "not answered yet. Write your answer in the cell above" in verdict.headline


@each_exercise()
def test_wrong_answers_and_an_unusual_right_one_are_there(exercise_id: str) -> None:
    if missing := missing_answers(exercise_id):
        pytest.fail("; ".join(missing), pytrace=False)


def missing_answers(exercise_id: str) -> list[str]:
    """What tests/wrong and tests/right lack of an exercise, in words."""
    there = {folder: len(examples(folder, exercise_id)) for folder in N_WANTED}
    return [
        f"tests/{folder}/{exercise_id} holds {there[folder]} answers, and needs at least {wanted}"
        for folder, wanted in N_WANTED.items()
        if there[folder] < wanted
    ]


def test_an_exercise_without_answers_is_seen() -> None:
    """The control."""
    assert missing_answers("02-nothing") == [
        "tests/wrong/02-nothing holds 0 answers, and needs at least 2",
        "tests/right/02-nothing holds 0 answers, and needs at least 1",
    ]


@each_exercise(slow=TAKE_A_SECOND)
@pytest.mark.parametrize("place", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_wrong_answer_fails_with_its_own_hint(exercise_id: str, place: int) -> None:
    """`make check` tries one of an exercise, `make test` another; all of them are in the part `answers`."""
    wrong = [one for one in examples("wrong", exercise_id) if one.name not in USE_UP_THEIR_TIME]
    expect_own_hints(CaseSet(exercise_id), [wrong[place]])


@in_full
def test_wrong_answers_fail_and_a_check_without_its_teeth_lets_some_pass(exercise_id: str) -> None:
    """The control: it is the oracle that rejects them, not the driver or an accident on the way.

    What CUDA does not define is found where the kernel is executed, before an oracle sees anything.
    """
    cases = CaseSet(exercise_id)
    known = expect_own_hints(cases, tried_first(exercise_id, "public")[0])
    toothless = replace(
        cases.oracle, expect=None, judge=(), judge_all=(), budgets=(), score=None, earned=None, record=None
    )
    quick = (one for one in examples("wrong", exercise_id) if one.name not in USE_UP_THEIR_TIME)
    runs_of = ((one, known.get(one.name) or cases.runs(one.source)) for one in quick)
    tried = list(islice(((one, runs) for one, runs in runs_of if not is_undefined(runs)), N_WITHOUT_TEETH))
    passed = []
    for one, runs in tried:
        trouble = runs[0].trouble
        again = cases.runs(one.source, forbids=False) if trouble and trouble.kind == "forbidden" else runs
        if cases.verdict(again, toothless).passed:
            passed.append(one.name)
    names = [one.name for one, _ in tried]
    assert 2 * len(passed) >= len(tried), f"less than half: only {passed} of {names}"


def is_undefined(runs: Sequence[Observation]) -> bool:
    """Whether a kernel did what CUDA does not define in one of the runs."""
    return any(run.trouble and run.trouble.text.startswith("LaunchFault: ") for run in runs)


@in_full
def test_some_wrong_answers_fail_on_hidden_cases(exercise_id: str) -> None:
    expect_own_hints(CASES["hidden"](exercise_id), tried_first(exercise_id, "hidden")[0])


def tried_first(exercise_id: str, cases: str) -> tuple[list[Example], list[Example]]:
    """Some wrong answers from all over the list, and the others."""
    wrong = examples("wrong", exercise_id)
    first = wrong[:: -(-len(wrong) // N_FIRST[cases])]
    return first, [one for one in wrong if one not in first]


@pytest.mark.full("answers")
@pytest.mark.later
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(
    "exercise_id, cases",
    [
        pytest.param(name, cases, marks=pytest.mark.lab(name[:2]))
        for name in ALL
        for cases in CASES
        if len(paths("wrong", name)) > N_FIRST[cases]
    ],
)
def test_the_other_wrong_answers_fail(exercise_id: str, cases: str) -> None:
    expect_own_hints(CASES[cases](exercise_id), tried_first(exercise_id, cases)[1])


@pytest.mark.parametrize("cases", CASES)
def test_every_wrong_answer_is_tried(cases: str) -> None:
    for exercise_id in ALL:
        first, others = tried_first(exercise_id, cases)
        assert 2 <= len(first) <= N_FIRST[cases]
        assert sorted(one.name for one in [*first, *others]) == [one.name for one in examples("wrong", exercise_id)]


@in_full
@on_each_set
def test_unusual_right_answers_get_full_marks(exercise_id: str, cases: str) -> None:
    expect_full_marks(CASES[cases](exercise_id), examples("right", exercise_id))


@pytest.mark.full("answers")
@pytest.mark.parametrize(
    "exercise_id",
    [pytest.param(name, marks=pytest.mark.lab(name[:2])) for name in ALL if hidden_of(name).memory_cases(Random(0))],
)
def test_right_answers_pass_the_large_cases_as_well(exercise_id: str) -> None:
    right = [Example(exercise_id, "solution", solution_of(exercise_id)), *examples("right", exercise_id)]
    expect_full_marks(CaseSet(exercise_id, SECRET, memory_cases=True), right)


def test_the_readme_shows_what_a_check_says() -> None:
    wrong = example("wrong", "02-blocked-sum/a_list_of_converted_blocks")
    said = as_text(public_verdict(wrong.exercise, wrong.source))
    assert f"```\n{said}\n```" in (TESTS.parent / "README.md").read_text()
