"""04-accumulate graded in earnest: how many micro-batches' activations are alive at once is measured from outside."""

from __future__ import annotations

import os
import re

import pytest

from grading.demo.examples import example, examples
from grading.isolation.plan import FULL
from grading.isolation.probe import try_tier
from grading.isolation.tiers import KERNEL, NONE, tier_named
from grading.supervisor import Job, grade_job
from grading.supervisor.result import ExerciseResult
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.routed_answers import BLIND_METER
from tests.grading.shared_sandboxes import shared_sandbox

NAME = "04-accumulate"
GRAPHS = example("wrong", f"{NAME}/keeps_graphs_alive")
RIGHT = {"the solution": solution_of(NAME), **{right.name: right.source for right in examples("right", NAME)}}
pytestmark = [pytest.mark.lab("04"), pytest.mark.full("answers")]


@pytest.fixture(scope="module")
def server():
    best = KERNEL if try_tier(KERNEL).works else NONE
    return shared_sandbox(tier_named(os.environ.get("LABS_ISOLATION", best.name)), FULL)


def graded(server, *cells: str) -> ExerciseResult:
    sources = (solution_of("04-setup"), *cells)
    steps = [RunCode(f"04-{number}", source) for number, source in enumerate(sources)]
    steps[-1] = RunCode(NAME, sources[-1])
    job = Job("04_batch_size", "ada", "1", (*steps, ServeExercise(f"{NAME}-check", NAME)), sources, (), b"key")
    return grade_job(server, job).exercises[NAME]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_answer_passes(server, name: str) -> None:
    result = graded(server, RIGHT[name])
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


def test_graphs_that_pile_up_are_told_in_public(server) -> None:
    verdict = graded(server, GRAPHS.source).public
    assert verdict.score == 0 and GRAPHS.hint in (verdict.hint or ""), as_text(verdict)


def test_graphs_that_pile_up_under_a_meter_that_lies_are_seen_from_outside(server) -> None:
    result = graded(server, BLIND_METER, GRAPHS.source)
    assert result.public.outcome == "passed", as_text(result.public)
    assert (result.outcome, result.score) == ("suspected", 0.0), as_text(result.deciding)
    problem = " ".join(text for _, text in result.deciding.rows)
    assert re.search("held from outside to|but from outside", problem), problem
