"""Lab 13, attention without its scores: what its text says in figures, its bytes, and its time where there is a GPU."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import track_traffic
from labkit.check.judge import judge
from labkit.exercises import find
from labkit.exercises.lab13.flash_attention import Attention
from labkit.meters import bench
from labkit.observe import make_inputs
from labkit.oracles import oracle_of
from labkit.oracles.lab13.flash_attention import load_bytes
from labkit.spec import CaseRun, Observation
from tests.exercises.harness import answers_in, solution_of

EXERCISE = "13-flash-attention"


@pytest.fixture(scope="module")
def attention():
    return answers_in(EXERCISE, solution_of(EXERCISE))["attention"]


def eager(q, k, v):
    later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu(1)
    scores = q @ k.transpose(1, 2) * q.shape[2] ** -0.5
    return scores.masked_fill(later, -float("inf")).softmax(-1) @ v


def moved_bytes(call, *tensors) -> int:
    with track_traffic() as traffic:
        call(*tensors)
    return traffic.total_bytes


def test_eager_attention_moves_19_times_what_it_takes_and_tiles_less_than_3() -> None:
    q, k, v = (torch.randn(1, 512, 64) for _ in range(3))
    assert moved_bytes(eager, q, k, v) / (4 * q.nbytes) == 19
    assert load_bytes(CaseRun(Attention(1, 512, 64, 64, 64), {})) == q.nbytes * (1 + 2 * 4.5)


@pytest.mark.parametrize("block_m, block_n", [(16, 16), (32, 16), (16, 32)])
def test_the_solution_loads_what_the_formula_says(attention, block_m: int, block_n: int) -> None:
    case = Attention(2, 53, 16, block_m, block_n)
    tensors = [torch.randn(2, 53, 16) for _ in range(3)]
    with track_traffic() as traffic:
        attention(*tensors, block_m, block_n)
    assert traffic.load_bytes == load_bytes(CaseRun(case, {}))
    assert traffic.store_bytes == case.n_bytes


def test_scores_of_a_layer_in_bytes() -> None:
    heads, seq, d_head = 32, 8192, 128
    assert round(2 * heads * seq**2 / 1e9, 1) == 4.3
    assert round(2 * heads * seq * d_head / 1e6) == 67
    assert 4 * 64 * 64 == 16 * 1024


@pytest.mark.parametrize("odd", [None, "text", float("nan"), torch.zeros(2, 3, 4), torch.full((1,), float("nan"))])
def test_a_judge_survives_what_is_no_result(odd: object) -> None:
    exercise = find(EXERCISE)
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 1)
    for got in (None, {"out": odd}):
        verdict = judge(exercise, oracle_of(EXERCISE), [Observation(case, tree, got, tree)], n_cases=2)
        assert verdict.score == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_on_a_gpu_it_is_twice_as_fast_as_eager(attention) -> None:
    q, k, v = (torch.randn(32, 4096, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    right = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(attention(q, k, v, 64, 64), right, rtol=1e-2, atol=1e-2)
    eager_ms = bench(lambda: eager(q, k, v)).median_ms
    assert eager_ms >= 2 * bench(lambda: attention(q, k, v, 64, 64)).median_ms
