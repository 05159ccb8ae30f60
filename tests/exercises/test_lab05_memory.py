"""Lab 05's budgets: on the memory cases a right answer stays far below what shows from outside, a breach does not."""

from __future__ import annotations

import pytest
import torch

from grading.demo.examples import example
from grading.hidden import Secret, hidden_of
from grading.supervisor.witness import SLACK_BYTES
from labkit import exercises
from labkit.exercises.lab05.chunked_loss import Head, head_inputs
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab05.chunked_loss import expected, peak_bytes
from labkit.oracles.lab05.chunked_mistakes import averages_means, mean_of_means
from labkit.spec import CaseRun, MiB, Observation
from tests.exercises.harness import answers_in, solution_of

WATCHED = ("05-checkpoint", "05-low-memory", "05-selective", "05-find-the-leak", "05-chunked-loss")
BREACHES = (
    "05-checkpoint/stashes_the_graph_on_ctx",
    "05-checkpoint/stashes_numpy_arrays",
    "05-low-memory/records_the_graph_on_the_way",
    "05-low-memory/keeps_the_inputs_of_all_layers",
    "05-selective/keeps_everything",
    "05-find-the-leak/as_it_was",
    "05-find-the-leak/hook_keeps_the_output",
    "05-chunked-loss/all_at_once",
    "05-chunked-loss/keeps_the_chunks_logits",
)
SECRET = Secret(b"a watched key", "05", "grace", "first")


def memory_run(exercise_id: str, source: str) -> tuple[Observation, float]:
    """The run of the memory case, and the peak that its budget allows."""
    exercise, draw = exercises.find(exercise_id), SECRET.draw(exercise_id, "watched")
    (case,) = hidden_of(exercise_id).memory_cases(draw)
    tree = make_inputs(exercise, case, 1)
    run = observe(exercise, gather_answers(exercise, answers_in(exercise_id, source)), case, tree)
    (budget,) = (budget for budget in oracle_of(exercise_id).budgets if budget.name == "peak_bytes")
    return run, budget.limit(CaseRun(case, tree))


@pytest.mark.slow
@pytest.mark.parametrize("exercise_id", WATCHED)
def test_the_solution_stays_within_the_watched_budget(exercise_id: str) -> None:
    run, limit = memory_run(exercise_id, solution_of(exercise_id))
    assert run.trouble is None
    assert run.measured["peak_bytes"] <= limit


@pytest.mark.slow
def test_small_chunks_leave_room_for_both_gradients_twice() -> None:
    exercise, case = exercises.find("05-chunked-loss"), Head(4096, 64, 256, 16)
    tree = make_inputs(exercise, case, 1)
    run = observe(exercise, gather_answers(exercise, answers_in(exercise.id, solution_of(exercise.id))), case, tree)
    assert run.trouble is None
    limit = peak_bytes(CaseRun(case, tree))
    assert limit - case.x_bytes + case.chunk_bytes < run.measured["peak_bytes"] <= limit


@pytest.mark.slow
@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_stands_out_by_far_more_than_the_slack(name: str) -> None:
    wrong = example("wrong", name)
    run, limit = memory_run(wrong.exercise, wrong.source)
    assert run.trouble is None
    assert run.measured["peak_bytes"] >= limit + 64 * MiB > limit + 2 * SLACK_BYTES


def test_a_loss_as_large_as_the_mean_of_means_is_none_without_the_last_chunks_gradient() -> None:
    case = Head(n_tokens=70, n_vocab=40, chunk_size=32)
    tree = head_inputs(case, torch.Generator().manual_seed(1))
    run = CaseRun(case, tree, expect=expected)
    got = {**run.expected, "loss": mean_of_means(run)}
    assert averages_means(CaseRun(case, tree, got=got, expect=expected)).item() is True
    without_the_last = {**got, "dx": torch.cat([got["dx"][:64], torch.zeros(6, case.width)])}
    assert averages_means(CaseRun(case, tree, got=without_the_last, expect=expected)) is False
