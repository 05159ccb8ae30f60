"""Lab 12: what its text says in figures, held by the solution, and verdicts that no single answer shows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import track_traffic
from labkit.check.judge import judge
from labkit.exercises import find
from labkit.exercises.lab12.shapes import kept_besides
from labkit.observe import make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab12.dropout_properties import (
    follows_the_seed,
    mask_does_not_repeat,
    share_is_right,
    values_are_right,
)
from labkit.spec import Observation
from tests.exercises.harness import answers_in, solution_of


def of_solution(exercise_id: str, name: str):
    return answers_in(exercise_id, solution_of(exercise_id))[name]


def moved_bytes(call) -> int:
    with track_traffic() as traffic:
        call()
    return traffic.total_bytes


def test_softmax_moves_two_matrices_and_the_chain_eight() -> None:
    softmax, x = of_solution("12-softmax", "softmax"), torch.randn(8, 500)

    def chain() -> None:
        e = torch.exp(x - x.amax(dim=1, keepdim=True))
        e / e.sum(dim=1, keepdim=True)

    assert moved_bytes(lambda: softmax(x)) == 2 * x.nbytes
    assert moved_bytes(chain) == pytest.approx(8 * x.nbytes, rel=0.01)


def test_swiglu_moves_eight_matrices_and_keeps_its_inputs() -> None:
    swiglu = of_solution("12-swiglu", "swiglu")
    gate, up = (torch.randn(8, 64, requires_grad=True) for _ in range(2))
    dout = torch.randn(8, 64)

    def step(call) -> int:
        return moved_bytes(lambda: torch.autograd.grad(call(gate, up), (gate, up), dout))

    assert step(swiglu) == 8 * gate.nbytes
    assert step(lambda gate, up: F.silu(gate) * up) == 14 * gate.nbytes
    assert kept_besides(swiglu(gate, up), gate, up) == 0


def test_adamw_moves_28_bytes_a_parameter() -> None:
    adamw_step, state = of_solution("12-adamw", "adamw_step"), [torch.rand(1000) for _ in range(4)]
    assert moved_bytes(lambda: adamw_step(*state, 2, 1e-3, 0.9, 0.999, 1e-8, 0.01)) == 28 * 1000


@pytest.mark.slow
def test_llama_rmsnorm_moves_nine_times_the_ideal() -> None:
    modeling = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers is not installed")
    norm, x = modeling.LlamaRMSNorm(512).bfloat16(), torch.randn(64, 512).bfloat16()
    with torch.no_grad():
        assert moved_bytes(lambda: norm(x)) / (2 * x.nbytes) == pytest.approx(9, abs=0.1)


@pytest.mark.parametrize("exercise_id", ["12-rmsnorm", "12-swiglu", "12-bias-gelu-dropout"])
def test_the_gradient_of_a_sum_comes_in_as_one_number_expanded(exercise_id: str) -> None:
    inputs = [torch.rand(shape, requires_grad=True) for shape in ((5, 60), (60,), (5, 60))]
    x, vector, y = inputs
    given, call = {
        "12-rmsnorm": ((x, vector), lambda norm: norm(x, vector, 1e-6)),
        "12-swiglu": ((x, y), lambda swiglu: swiglu(x, y)),
        "12-bias-gelu-dropout": (inputs, lambda dropout: dropout(x, vector, y, 0.25, 3)),
    }[exercise_id]
    out = call(of_solution(exercise_id, find(exercise_id).answers[0].name))
    expanded = torch.autograd.grad(out.sum(), given, retain_graph=True)
    for got, right in zip(expanded, torch.autograd.grad(out, given, torch.ones_like(out))):
        assert torch.equal(got, right)


def test_a_result_of_pytorchs_own_keeps_nothing_that_can_be_seen() -> None:
    x = torch.rand(3, 4, requires_grad=True)
    assert kept_besides(F.rms_norm(x, (4,)), x) >= 0


def test_what_ctx_keeps_counts_wherever_it_is() -> None:
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x + 1)
            ctx.more = x[:2] * 2
            ctx.view = x[:3]
            return x.clone()

        @staticmethod
        def backward(ctx, dout):
            return dout

    x = torch.randn(10, requires_grad=True)
    assert kept_besides(Keeps.apply(x), x) == 4 * (10 + 2)


@pytest.fixture(scope="module")
def dropped() -> Observation:
    """A right run of the dropout exercise."""
    exercise = find("12-bias-gelu-dropout")
    answers = answers_in(exercise.id, solution_of(exercise.id))
    case = exercise.public[0]
    named = SimpleNamespace(bias_gelu_dropout=answers["bias_gelu_dropout"])
    without_compiler = _without_compiler(exercise)
    return observe(without_compiler, named, case, make_inputs(exercise, case, 5))


def _without_compiler(exercise):
    def drive(ans, case, tree, stage):
        stage.meter = lambda name: nullcontext()
        return exercise.drive(ans, case, tree, stage)

    return replace(exercise, drive=drive)


MASKS = {
    "repeats": (mask_does_not_repeat, lambda rows, cols: (torch.rand(16) >= 0.25).repeat(rows * cols)[: rows * cols]),
    "drops too much": (share_is_right, lambda rows, cols: torch.rand(rows * cols) >= 0.35),
    "ignores the seed": (follows_the_seed, None),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_that_is_none_is_told(dropped: Observation, name: str) -> None:
    holds, make = MASKS[name]
    assert holds(dropped) is None
    tree, case = dropped.tree, dropped.case
    out = dropped.got["other"]
    if make is not None:
        torch.manual_seed(0)
        mask = make(case.n_rows, case.n_cols).reshape(case.n_rows, case.n_cols)
        out = tree["y"] + mask * F.gelu(tree["x"] + tree["bias"]) / (1 - case.p)
    wrong = Observation(case, tree, {**dropped.got, "out": out})
    assert values_are_right(wrong) is None
    assert holds(wrong)


@pytest.mark.parametrize(
    "name", ["12-add", "12-softmax", "12-rmsnorm", "12-swiglu", "12-bias-gelu-dropout", "12-adamw"]
)
@pytest.mark.parametrize("odd", [None, "text", float("nan"), torch.zeros(2, 3, 4), torch.full((1,), float("nan"))])
def test_a_judge_survives_what_is_no_result(name: str, odd: object) -> None:
    exercise, oracle = find(name), oracle_of(name)
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 1)
    names = ("out", "other", "dx", "dbias", "dy", "dgate", "dup", "dweight", "kept_bytes", "param", "exp_avg")
    for got in (None, {key: odd for key in names}):
        verdict = judge(exercise, oracle, [Observation(case, tree, got, tree)], n_cases=len(exercise.public))
        assert verdict.score == 0
