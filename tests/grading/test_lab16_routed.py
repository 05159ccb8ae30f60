"""Lab 16's exercises graded in earnest: ranks as processes behind the router, their memory read from outside."""

from __future__ import annotations

import re

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

IDS = ("16-zero1", "16-zero2", "16-fsdp-unit", "16-fsdp", "16-clip")
WRONG = (
    "16-zero1/all_reduces_then_gathers",
    "16-zero1/replicates_and_calls_it_sharded",
    "16-zero1/keeps_its_states_in_numpy",
    "16-zero2/keeps_the_whole_gradient",
    "16-zero2/adds_up_at_home_in_numpy",
    "16-fsdp-unit/keeps_the_gathered_weight",
    "16-fsdp-unit/keeps_it_in_the_network",
    "16-fsdp/autograd_keeps_what_was_gathered",
    "16-fsdp/module_keeps_its_weights",
    "16-fsdp/keeps_from_the_second_gather_on",
    "16-clip/norm_of_its_own_shard",
)
CHEATS = {
    # Every rank reads in this dictionary what the others have written there.
    "16-clip": """
TOLD = {}


def clip_sharded(comm, sharded, replicated, max_norm):
    TOLD[comm.rank] = [p.grad.float() for p in sharded if p.grad is not None]
    comm.barrier()
    grads = [grad for rank in range(comm.world_size) for grad in TOLD[rank]]
    grads += [p.grad.float() for p in replicated]
    norm = nn.utils.get_total_norm(grads)
    comm.barrier()
    for p in (*sharded, *replicated):
        if p.grad is not None:
            p.grad *= torch.clamp(max_norm / norm, max=1.0)
    return norm
""",
}
HIDES_FROM_THE_METER = solution_of("16-fsdp-unit").replace(
    "    return whole[: shape[0] * shape[1]].view(shape)",
    "    KEPT.append(bytearray(whole.nbytes * 4))\n    return whole[: shape[0] * shape[1]].view(shape)\n\n\nKEPT = []",
)
"""Memory of Python's own, which the meter sees as well, and more than the budget by far."""
LIES = f"""{BLIND_METER}
import labkit.exercises.lab16.optimizers as optimizers
import labkit.exercises.lab16.zero2 as zero2
import labkit.ranks.comm as communicator
import labkit.stage as stages
from labkit.meters.memory import Held

communicator.held_now = stages.held_now = lambda: Held(100, ())
optimizers.Maker.state_bytes = lambda maker: 0
zero2.held_bytes = lambda tensors: 0
"""
"""Whatever a rank is asked about its own memory, it has next to nothing."""
GATHERS_AND_KEEPS = {
    "16-fsdp-unit": solution_of("16-fsdp-unit").replace(
        "    return whole[: shape[0]", "    KEPT[id(shard)] = whole\n    return whole[: shape[0]"
    )
    + "\n\nKEPT = {}\n",
    "16-fsdp": solution_of("16-fsdp").replace(
        "        return whole\n", "        self.kept = whole\n        return whole\n", 1
    ),
}
"""Each layer is gathered as often as it should be, and kept all the same: calls and bytes sent do not show it."""
SILENCES_THE_DRIVER = """
import labkit.stage as stages

stages.Stage.mark = lambda stage, label: None
"""
MARKS_WHEN_NOTHING_IS_LEFT = (
    solution_of("16-fsdp-unit")
    .replace(
        "        return x @ gathered(shard, comm, ctx.shape).T",
        "        KEPT.append(gathered(shard, comm, ctx.shape))\n        return x @ KEPT[-1].T",
    )
    .replace(
        "        return grad_x, grad_shard, None, None, None",
        "        whole = None\n"
        "        if x.is_leaf:\n"
        "            KEPT.clear()\n"
        "            ctx.comm.mark('after the forward pass')\n"
        "            ctx.comm.mark('after the backward pass')\n"
        "        return grad_x, grad_shard, None, None, None",
    )
    + "\n\nKEPT = []\n"
)
"""All weights are kept from one pass to the other, and let go of before the answer itself marks both moments."""
KEEPS_MEMORY = (
    "16-zero1/replicates_and_calls_it_sharded",
    "16-zero1/shard_is_a_view_of_everything",
    "16-zero2/keeps_the_whole_gradient",
    "16-zero2/leaves_the_gradient_until_the_step",
    "16-zero2/replicates_the_states",
    "16-fsdp-unit/gathers_again_and_keeps_it_in_numpy",
    "16-fsdp/module_keeps_its_weights",
    "16-fsdp/never_frees_after_backward",
    "16-fsdp/keeps_from_the_second_gather_on",
)
SEEN = r"the meter said 0\.0 MiB, but from outside the process grew by [\d.]+ MiB|the notebook already held \d+ MiB"
"""The latter where what is kept of the cases before is too much to begin with."""
pytestmark = [pytest.mark.lab("16"), pytest.mark.full("answers")]


@pytest.fixture(scope="module")
def server():
    return routed_sandbox()


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    assert_passes(server, exercise_id, solution_of(exercise_id))


@pytest.mark.parametrize("name", WRONG)
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    assert_fails_with_its_hint(server, name)


@pytest.mark.parametrize("exercise_id", list(CHEATS))
def test_what_does_not_go_through_the_router_gains_nothing(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, CHEATS[exercise_id])
    assert result.public.score == 0, as_text(result.public)


def test_memory_that_is_no_tensor_counts_too(server) -> None:
    assert solution_of("16-fsdp-unit") != HIDES_FROM_THE_METER
    result = graded(server, "16-fsdp-unit", HIDES_FROM_THE_METER)
    assert result.public.score == 0, as_text(result.public)


def test_moments_that_an_answer_marks_when_it_likes_earn_nothing(server) -> None:
    """Nothing is held then, and as much is sent as should be; but what was sent by the first of them gives it away."""
    assert MARKS_WHEN_NOTHING_IS_LEFT.count("KEPT") == 4
    result = graded(server, "16-fsdp-unit", MARKS_WHEN_NOTHING_IS_LEFT, SILENCES_THE_DRIVER)
    assert result.public.score == 0, as_text(result.public)
    assert "the ranks sent 0 bytes afterwards" in as_text(result.public)


def suspected_from_outside(server, exercise_id: str, source: str) -> None:
    result = graded(server, exercise_id, source, LIES)
    assert result.public.outcome == "passed", as_text(result.public)
    assert (result.outcome, result.score) == ("suspected", 0.0), as_text(result.deciding)
    assert re.search(SEEN, " ".join(text for _, text in result.deciding.rows)), as_text(result.deciding)


@pytest.mark.full("attacks")
@pytest.mark.parametrize("name", KEEPS_MEMORY)
def test_what_is_kept_is_seen_from_outside(server, name: str) -> None:
    """Every meter of the process says that there is nothing: large hidden cases show it by what they take."""
    wrong = example("wrong", name)
    suspected_from_outside(server, wrong.exercise, wrong.source)


@pytest.mark.full("attacks")
@pytest.mark.parametrize("exercise_id", list(GATHERS_AND_KEEPS))
def test_a_gather_that_is_kept_and_done_again_is_seen_from_outside(server, exercise_id: str) -> None:
    assert GATHERS_AND_KEEPS[exercise_id].count("whole") > solution_of(exercise_id).count("whole")
    suspected_from_outside(server, exercise_id, GATHERS_AND_KEEPS[exercise_id])
