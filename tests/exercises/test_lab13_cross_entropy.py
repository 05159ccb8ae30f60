"""Lab 13, cross-entropy in place: what its text says in figures, and verdicts that no single answer shows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import track_memory, track_traffic
from labkit.check.judge import judge
from labkit.exercises import find
from labkit.observe import make_inputs, observe
from labkit.oracles import oracle_of
from labkit.spec import Observation
from tests.exercises.harness import answers_in, solution_of

EXERCISE = "13-cross-entropy"


@pytest.fixture(scope="module")
def cross_entropy():
    return answers_in(EXERCISE, solution_of(EXERCISE))["cross_entropy"]


def step(call, meter):
    """What a meter says of the loss and its gradient for 4 tokens and a vocabulary of 8192, and the bytes of these."""
    logits, targets = torch.randn(4, 8192, requires_grad=True), torch.arange(4)
    with meter(logits, targets) as measured:
        torch.autograd.grad(call(logits, targets), logits)
    return measured, logits.nbytes


def test_the_gradient_takes_no_memory_and_pytorchs_three_matrices(cross_entropy) -> None:
    for call, times in ((F.cross_entropy, 4.0), (cross_entropy, 1.0)):
        profile, n_bytes = step(call, lambda *batch: track_memory(batch=list(batch)))
        assert profile.peak_bytes / n_bytes == pytest.approx(times, abs=0.05)


def test_three_matrices_are_moved_where_pytorch_moves_eight(cross_entropy) -> None:
    for call, times in ((F.cross_entropy, 8.0), (cross_entropy, 3.0)):
        traffic, n_bytes = step(call, lambda *batch: track_traffic())
        assert traffic.total_bytes / n_bytes == pytest.approx(times, rel=0.01)


def test_the_logits_of_llama_3() -> None:
    n_logits = 8192 * 128_256
    assert (round(2 * n_logits / 1e9, 1), round(4 * n_logits / 1e9, 1)) == (2.1, 4.2)


def test_a_gradient_that_comes_in_other_than_1_costs_two_matrices_more(cross_entropy) -> None:
    traffic, n_bytes = step(lambda *batch: 0.5 * cross_entropy(*batch), lambda *batch: track_traffic())
    assert traffic.total_bytes / n_bytes == pytest.approx(5, rel=0.01)


def run_of(call, case) -> Observation:
    """A run without the compiler, which takes long and is not asked here."""
    exercise = find(EXERCISE)

    def drive(ans, case, tree, stage):
        stage.meter = lambda name: nullcontext()
        return exercise.drive(ans, case, tree, stage)

    bare = replace(exercise, drive=drive)
    return observe(bare, SimpleNamespace(cross_entropy=call), case, make_inputs(exercise, case, 3))


def test_a_right_gradient_in_other_memory_is_told(cross_entropy) -> None:
    case = find(EXERCISE).public[0]
    in_place = oracle_of(EXERCISE).judge[0]
    elsewhere = run_of(lambda logits, targets, ignore: F.cross_entropy(logits, targets, ignore_index=ignore), case)
    assert "not where the logits were" in in_place(elsewhere)
    assert in_place(run_of(cross_entropy, case)) is None


def test_changed_targets_are_told(cross_entropy) -> None:
    def changes(logits, targets, ignore_index):
        loss = cross_entropy(logits, targets, ignore_index)
        targets.clamp_(min=0)
        return loss

    assert oracle_of(EXERCISE).judge[1](run_of(changes, find(EXERCISE).public[0])) == "the targets were changed"


@pytest.mark.parametrize("odd", [None, "text", float("nan"), torch.zeros(2, 3, 4), torch.full((1,), float("nan"))])
def test_a_judge_survives_what_is_no_result(odd: object) -> None:
    exercise = find(EXERCISE)
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 1)
    for got in (None, {"loss": odd, "dlogits": odd}):
        verdict = judge(exercise, oracle_of(EXERCISE), [Observation(case, tree, got, tree)], n_cases=2)
        assert verdict.score == 0
