"""Lab 15's exercises of several ranks graded in earnest, each rank a process of its own behind the router."""

from __future__ import annotations

import pytest

from grading.demo.examples import Example, examples
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.routed_answers import assert_fails_with_its_hint, assert_passes, graded, routed_sandbox

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
    return routed_sandbox()


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    assert_passes(server, exercise_id, solution_of(exercise_id))


@in_full
@pytest.mark.parametrize("right", RIGHT, ids=lambda right: f"{right.exercise}/{right.name}")
def test_an_unusual_right_answer_passes(server, right: Example) -> None:
    assert_passes(server, right.exercise, right.source)


@in_full
@pytest.mark.parametrize("name", WRONG)
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    assert_fails_with_its_hint(server, name)


@pytest.mark.parametrize("exercise_id", list(CHEATS))
def test_what_does_not_go_through_the_router_gains_nothing(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, CHEATS[exercise_id])
    assert result.public.score == 0, as_text(result.public)
