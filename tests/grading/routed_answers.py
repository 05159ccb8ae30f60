"""An answer of several ranks graded in earnest: processes behind the router, their memory read from outside."""

from __future__ import annotations

import os

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

BLIND_METER = """
import contextlib

from labkit.meters import METERS


@contextlib.contextmanager
def blind(measured, held=None):
    yield
    measured["peak_bytes"] = 100.0


METERS["memory"] = blind
"""
"""A cell after which a rank's meter says that next to nothing was allocated."""


def routed_sandbox():
    """On the best tier that this machine has."""
    best = KERNEL if try_tier(KERNEL).works else NONE
    return shared_sandbox(tier_named(os.environ.get("LABS_ISOLATION", best.name)), FULL)


def graded(server, exercise_id: str, source: str, before: str = "") -> ExerciseResult:
    """before: what the set-up cell ends with."""
    set_up_id = f"{exercise_id[:2]}-setup"
    set_up = solution_of(set_up_id) + before
    steps = (
        RunCode(set_up_id, set_up),
        RunCode(exercise_id, source),
        ServeExercise(f"{exercise_id}-check", exercise_id),
    )
    job = Job(exercise_id[:2], "ada", "1", steps, (set_up, source), (), b"key")
    return grade_job(server, job).exercises[exercise_id]


def assert_passes(server, exercise_id: str, source: str) -> None:
    """On public and on hidden cases."""
    result = graded(server, exercise_id, source)
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


def assert_fails_with_its_hint(server, name: str) -> None:
    """name: a wrong answer, "17-tp-mlp/bias_on_every_rank"."""
    wrong = example("wrong", name)
    verdict = graded(server, wrong.exercise, wrong.source).public
    assert verdict.score == 0 and wrong.hint in (verdict.hint or ""), as_text(verdict)
