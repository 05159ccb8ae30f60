"""Lab 18's training step graded in earnest: ranks as processes behind the router, their memory read from outside."""

from __future__ import annotations

import pytest

from grading.demo.examples import example
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.routed_answers import BLIND_METER, graded, routed_sandbox

NAME = "18-pipeline-step"
WRONG = ("scaled_twice", "tied_embedding_drifts", "waits_for_every_send")
LIES = f"""{BLIND_METER}
import labkit.exercises.lab18.model as model

model.Alive.watch = lambda self, x: x
"""
"""Whatever a rank is asked about its own memory and about what it keeps alive, it has next to nothing."""
pytestmark = [pytest.mark.lab("18"), pytest.mark.full("answers")]


@pytest.fixture(scope="module")
def server():
    return routed_sandbox()


def test_the_solution_passes(server) -> None:
    result = graded(server, NAME, solution_of(NAME))
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


@pytest.mark.parametrize("name", WRONG)
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    wrong = example("wrong", f"{NAME}/{name}")
    verdict = graded(server, NAME, wrong.source).public
    assert verdict.score == 0 and wrong.hint in (verdict.hint or ""), as_text(verdict)


@pytest.mark.full("attacks")
def test_activations_that_are_kept_are_seen_from_outside(server) -> None:
    """GPipe where 1F1B is asked: its meters say that nothing is kept, and large hidden cases show it."""
    wrong = example("wrong", f"{NAME}/keeps_all_activations")
    result = graded(server, NAME, wrong.source, LIES)
    assert result.public.outcome == "passed", as_text(result.public)
    assert (result.outcome, result.score) == ("suspected", 0.0), as_text(result.deciding)
