"""Lab 15's exercises of several ranks graded in earnest, each rank a process of its own behind the router."""

from __future__ import annotations

import os

import pytest

from grading.demo.examples import Example, example, examples
from grading.isolation.plan import FULL
from grading.isolation.probe import try_tier
from grading.isolation.tiers import KERNEL, NONE, tier_named
from grading.supervisor import Job, grade_job
from grading.supervisor.result import ExerciseResult
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.shared_sandboxes import shared_sandbox

IDS = ("15-ddp", "15-no-sync", "15-amp-clip", "15-sync-bn")
RIGHT = [right for name in IDS for right in examples("right", name)]
WRONG = (
    "15-ddp/waits_in_the_hook",
    "15-ddp/one_call_per_parameter",
    "15-ddp/sends_what_is_ready",
    "15-no-sync/talks_every_time",
    "15-amp-clip/decides_per_rank",
    "15-sync-bn/three_calls",
)
CHEATS = {
    # Every rank reads in this dictionary what the others have written there.
    "15-sync-bn": """
TOLD = {}


def sync_batch_norm(comm, x, running_mean, running_var, weight, bias, momentum, eps):
    TOLD[comm.rank] = x
    comm.barrier()
    rows = torch.cat([TOLD[rank] for rank in range(comm.world_size)])
    out = F.batch_norm(rows, running_mean, running_var, weight, bias, True, momentum, eps)
    comm.barrier()
    return out.split([len(TOLD[rank]) for rank in range(comm.world_size)])[comm.rank]
""",
    # The clock of the backward passes is stopped.
    "15-ddp": solution_of("15-ddp").replace("self.begin()", "module.comm = None\n        self.begin()", 1),
}
pytestmark = [pytest.mark.slow, pytest.mark.lab("15")]
in_full = pytest.mark.full("answers")


@pytest.fixture(scope="module")
def server():
    # With what the grader preloads for a lab that has optimizers: every rank would load it anew.
    best = KERNEL if try_tier(KERNEL).works else NONE
    return shared_sandbox(tier_named(os.environ.get("LABS_ISOLATION", best.name)), FULL)


def graded(server, exercise_id: str, source: str) -> ExerciseResult:
    set_up = solution_of("15-setup")
    steps = (
        RunCode("15-setup", set_up),
        RunCode(exercise_id, source),
        ServeExercise(f"{exercise_id}-check", exercise_id),
    )
    job = Job("15_ddp", "ada", "1", steps, (set_up, source), (), b"key")
    return grade_job(server, job).exercises[exercise_id]


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, solution_of(exercise_id))
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


@in_full
@pytest.mark.parametrize("right", RIGHT, ids=lambda right: f"{right.exercise}/{right.name}")
def test_an_unusual_right_answer_passes(server, right: Example) -> None:
    result = graded(server, right.exercise, right.source)
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


@in_full
@pytest.mark.parametrize("name", WRONG)
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    wrong = example("wrong", name)
    verdict = graded(server, wrong.exercise, wrong.source).public
    assert verdict.score == 0 and wrong.hint in (verdict.hint or ""), as_text(verdict)


@pytest.mark.parametrize("exercise_id", list(CHEATS))
def test_what_does_not_go_through_the_router_gains_nothing(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, CHEATS[exercise_id])
    assert result.public.score == 0, as_text(result.public)
