"""Lab 19's exercises of several ranks graded in earnest: behind the router, their memory read from outside."""

from __future__ import annotations

import pytest

from grading.demo.examples import example
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.routed_answers import (
    BLIND_METER,
    assert_fails_with_its_hint,
    assert_passes,
    graded,
    routed_sandbox,
)

IDS = ("19-ring-attention", "19-ulysses", "19-moe-dispatch")
WRONG = (
    "19-ring-attention/does_not_rescale",
    "19-ring-attention/gathers_keys",
    "19-ring-attention/gradients_not_brought_home",
    "19-ring-attention/sends_and_waits_first",
    "19-ulysses/backward_not_swapped",
    "19-ulysses/gathers_the_text",
    "19-ulysses/refuses_on_the_way",
    "19-moe-dispatch/order_not_undone",
    "19-moe-dispatch/receives_what_it_sends",
    "19-moe-dispatch/sends_the_numbers_of_experts",
)
pytestmark = [pytest.mark.lab("19"), pytest.mark.full("answers")]


@pytest.fixture(scope="module")
def server():
    return routed_sandbox()


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    assert_passes(server, exercise_id, solution_of(exercise_id))


@pytest.mark.parametrize("name", WRONG)
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    assert_fails_with_its_hint(server, name)


@pytest.mark.full("attacks")
def test_keys_that_are_gathered_are_seen_from_outside(server) -> None:
    """Its meters say that nothing is held, and large hidden cases show it."""
    wrong = example("wrong", "19-ring-attention/gathers_keys")
    result = graded(server, wrong.exercise, wrong.source, BLIND_METER)
    assert result.public.outcome == "passed", as_text(result.public)
    assert (result.outcome, result.score) == ("suspected", 0.0), as_text(result.deciding)
