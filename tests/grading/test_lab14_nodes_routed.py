"""Lab 14's all-reduce over nodes graded in earnest, up to twelve ranks as processes: what crosses nodes is the router's
own count, on the nodes of the case."""

from __future__ import annotations

import pytest

from grading.demo.examples import example
from tests.exercises.harness import solution_of
from tests.grading.routed_answers import assert_fails_with_its_hint, assert_passes, routed_sandbox

EXERCISE = "14-hierarchical"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    return routed_sandbox()


@pytest.mark.parametrize(
    "source", [solution_of(EXERCISE), example("right", f"{EXERCISE}/leaders").source], ids=["solution", "leaders"]
)
def test_right_answers_pass(server, source: str) -> None:
    assert_passes(server, EXERCISE, source)


@pytest.mark.parametrize("name", ["flat_ring", "one_part_after_the_other", "own_node_only"])
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    assert_fails_with_its_hint(server, f"{EXERCISE}/{name}")
