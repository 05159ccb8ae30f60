"""Lab 17's layers graded in earnest: ranks as processes behind the router, their memory read from outside."""

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

IDS = ("17-tp-mlp", "17-tp-attention", "17-sequence-parallel")
WRONG = (
    "17-tp-mlp/bias_on_every_rank",
    "17-tp-mlp/views_of_whole_weights",
    "17-tp-attention/copies_drift_apart",
    "17-sequence-parallel/one_seed_for_all",
    "17-sequence-parallel/keeps_the_gathered_input",
)
LIES = f"""{BLIND_METER}
import labkit.ranks.comm as communicator
import labkit.stage as stages
from labkit.meters.memory import Held

communicator.held_now = stages.held_now = lambda: Held(100, ())
"""
"""Whatever a rank is asked about its own memory, it has next to nothing."""
KEEPS_MEMORY = (
    "17-tp-mlp/views_of_whole_weights",
    "17-tp-attention/views_of_whole_weights",
    "17-sequence-parallel/gathers_again_and_keeps_it_too",
)
SILENCES_THE_DRIVER = """
import labkit.stage as stages

halt = stages.Stage.mark
stages.Stage.mark = lambda stage, label: None if label == "after the forward pass" else halt(stage, label)
"""
MARKS_WHEN_NOTHING_IS_LEFT = (
    solution_of("17-sequence-parallel")
    .replace(
        "        return F.linear(gathered(x, comm), weight, bias)",
        "        ctx.whole = gathered(x, comm)\n        return F.linear(ctx.whole, weight, bias)",
    )
    .replace(
        "        grad_weight = grad.flatten(0, 1).T @ gathered(x, ctx.comm).flatten(0, 1)",
        "        grad_weight = grad.flatten(0, 1).T @ ctx.whole.flatten(0, 1)\n"
        "        ctx.whole = None\n"
        "        ctx.comm.mark('after the forward pass')\n"
        "        gathered(torch.zeros(1), ctx.comm)\n"
        "        gathered(torch.zeros(1), ctx.comm)",
    )
    .replace("        return gathered(grad, ctx.comm), None", "        return by_messages(grad, ctx.comm), None")
    + """

def by_messages(part, comm):
    others = [rank for rank in range(comm.world_size) if rank != comm.rank]
    parts = {rank: torch.empty_like(part) for rank in others} | {comm.rank: part}
    works = [work for rank in others for work in (comm.isend(part, rank), comm.irecv(parts[rank], rank))]
    for work in works:
        work.wait()
    return torch.cat([parts[rank] for rank in range(comm.world_size)])
"""
)
"""The gathered input is kept, and let go of before the answer itself marks the end of the forward pass. Until then the
backward pass calls no collective, but sends messages; the gathers that are missing later carry next to nothing."""
pytestmark = [pytest.mark.lab("17"), pytest.mark.full("answers")]


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
@pytest.mark.parametrize("name", KEEPS_MEMORY)
def test_what_is_kept_is_seen_from_outside(server, name: str) -> None:
    """Every meter of the process says that there is nothing: large hidden cases show it by what they take."""
    wrong = example("wrong", name)
    result = graded(server, wrong.exercise, wrong.source, LIES)
    assert result.public.outcome == "passed", as_text(result.public)
    assert (result.outcome, result.score) == ("suspected", 0.0), as_text(result.deciding)


@pytest.mark.full("attacks")
def test_moments_that_an_answer_marks_when_it_likes_earn_nothing(server) -> None:
    """Nothing is held then, and the calls are as many as they should be; but what is sent later gives it away."""
    assert MARKS_WHEN_NOTHING_IS_LEFT.count("ctx.whole") == 4
    result = graded(server, "17-sequence-parallel", MARKS_WHEN_NOTHING_IS_LEFT, SILENCES_THE_DRIVER)
    assert result.public.score == 0, as_text(result.public)
    assert "Too little is sent" in result.public.hint, as_text(result.public)
