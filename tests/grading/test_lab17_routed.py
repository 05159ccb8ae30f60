"""Lab 17's loss, embedding and finished gradients graded in earnest: ranks as processes behind the router, and the
memory of a rank that holds all logits seen from outside."""

from __future__ import annotations

import os

import pytest

from grading.demo.examples import example
from grading.isolation.plan import FULL
from grading.isolation.probe import try_tier
from grading.isolation.tiers import KERNEL, NONE, tier_named
from grading.supervisor import Job, grade_job
from grading.supervisor.result import ExerciseResult
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.shared_sandboxes import shared_sandbox

IDS = ("17-vocab-loss", "17-vocab-embedding", "17-mend", "17-compose-bugs", "17-rank-groups")
WRONG = (
    "17-vocab-loss/gathers_the_logits",
    "17-vocab-loss/subtracts_its_own_maximum",
    "17-vocab-embedding/clamps_and_does_not_zero",
    "17-mend/as_it_was_shown",
    "17-compose-bugs/calls_every_difference_a_missing_sum",
)
LIES = """
import contextlib

from labkit.meters import METERS


@contextlib.contextmanager
def blind(measured, held=None):
    yield
    measured["peak_bytes"] = 100.0


METERS["memory"] = blind
"""
"""A rank that is asked for its peak has next to nothing."""
pytestmark = [pytest.mark.lab("17"), pytest.mark.full("answers")]


@pytest.fixture(scope="module")
def server():
    best = KERNEL if try_tier(KERNEL).works else NONE
    return shared_sandbox(tier_named(os.environ.get("LABS_ISOLATION", best.name)), FULL)


def graded(server, exercise_id: str, source: str, before: str = "") -> ExerciseResult:
    """before: what the set-up cell ends with."""
    set_up = solution_of("17-setup") + before
    steps = (
        RunCode("17-setup", set_up),
        RunCode(exercise_id, source),
        ServeExercise(f"{exercise_id}-check", exercise_id),
    )
    job = Job("17_tensor_parallel", "ada", "1", steps, (set_up, source), (), b"key")
    return grade_job(server, job).exercises[exercise_id]


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, solution_of(exercise_id))
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


@pytest.mark.parametrize("name", WRONG)
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    wrong = example("wrong", name)
    verdict = graded(server, wrong.exercise, wrong.source).public
    assert verdict.score == 0 and wrong.hint in (verdict.hint or ""), as_text(verdict)


def test_a_one_hot_row_of_the_vocabulary_is_seen_from_outside(server) -> None:
    """It sends nothing too much: only memory tells."""
    wrong = example("wrong", "17-vocab-loss/a_one_hot_row_of_the_vocabulary")
    result = graded(server, wrong.exercise, wrong.source, LIES)
    assert result.hidden.score == 0 and result.hidden.outcome == "suspected", as_text(result.hidden)
    assert "memory held from outside" in as_text(result.hidden)
