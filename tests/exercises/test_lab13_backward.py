"""Lab 13, the backward pass of attention: what its text says in figures, and its bytes."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from grading.demo.examples import example
from labkit import track_traffic
from labkit.check.judge import judge
from labkit.exercises import find
from labkit.exercises.lab13.flash_backward import Backward, forward
from labkit.observe import make_inputs
from labkit.oracles import oracle_of
from labkit.oracles.lab13.backward_bytes import atomic_bytes, least_loaded, load_bytes, store_bytes
from labkit.oracles.lab13.backward_played import GRADIENTS, gradients
from labkit.oracles.lab13.flash_backward import expected
from labkit.spec import CaseRun, Observation
from tests.exercises.harness import answers_in, solution_of

EXERCISE = "13-flash-backward"
CASES = (
    Backward(2, 53, 16, 32, 16),
    Backward(1, 53, 16, 16, 32),
    Backward(2, 40, 16, 16, 32, causal=False),
    Backward(1, 64, 16, 32, 32),
)


def on(case: Backward, source: str) -> CaseRun[Backward]:
    """What an answer makes of a case, and what it moves."""
    tree = make_inputs(find(EXERCISE), case, 1)
    call = answers_in(EXERCISE, source)["attention_backward"]
    given = [tree[name] for name in ("q", "k", "v", "out", "lse", "dout")]
    with track_traffic() as traffic:
        found = call(*given, case.causal, case.block_m, case.block_n)
    measured = {name: getattr(traffic, name) for name in ("load_bytes", "store_bytes", "atomic_bytes")}
    return CaseRun(case, tree, dict(zip(GRADIENTS, found)), measured=measured)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_solution_moves_what_the_formula_says(case: Backward) -> None:
    """But for `out` and `dout`, which a kernel of their own may load once more, and one of two statistics."""
    run = on(case, solution_of(EXERCISE))
    per_row, n_queries = case.n_bytes // case.seq, case.n_heads * case.seq
    assert run.measured["load_bytes"] == load_bytes(run) - per_row * case.seq - 4 * n_queries
    assert run.measured["store_bytes"] == 3 * case.n_bytes + 4 * n_queries == store_bytes(run) - 4 * n_queries
    assert least_loaded(run) <= run.measured["load_bytes"] and run.measured["atomic_bytes"] == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_kernel_with_atomics_keeps_within_budgets_of_its_own(case: Backward) -> None:
    run = on(case, example("right", f"{EXERCISE}/one_kernel_with_atomics").source)
    assert 0 < run.measured["atomic_bytes"] <= atomic_bytes(run)
    assert least_loaded(run) <= run.measured["load_bytes"] <= load_bytes(run)
    assert run.measured["store_bytes"] <= store_bytes(run)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_five_products_are_the_gradients_that_autograd_finds(case: Backward) -> None:
    run = CaseRun(case, make_inputs(find(EXERCISE), case, 1), expect=expected)
    for name, one in gradients(run).items():
        torch.testing.assert_close(one.float(), run.expected[name], rtol=1e-4, atol=2e-3)


def test_no_matrix_of_scores_fits_into_the_budget() -> None:
    """The control: at every public case a float of each pair is more than what may be written besides."""
    for case in find(EXERCISE).public:
        run = CaseRun(case, {}, measured={"atomic_bytes": 0})
        pairs = case.n_heads * case.seq**2 * getattr(torch, case.dtype).itemsize
        assert 2 * pairs > store_bytes(run) - 3 * case.n_bytes


def test_a_row_of_low_scores_overflows_where_lanes_past_the_last_key_count() -> None:
    for case in find(EXERCISE).public:
        tree = make_inputs(find(EXERCISE), case, 1)
        assert bool((tree["lse"][:, 1::2] < -100).all()) and bool((tree["lse"][:, ::2] > 100).all())
        assert case.seq % case.block_n and case.seq % case.block_m


def test_eager_attention_moves_12_times_the_ideal_and_the_solution_3_times() -> None:
    q, k, v = (torch.randn(1, 512, 64, requires_grad=True) for _ in range(3))
    later, dout = torch.ones(512, 512, dtype=torch.bool).triu(1), torch.randn(1, 512, 64)
    out = (q @ k.mT * 0.125).masked_fill(later, -float("inf")).softmax(-1) @ v
    with track_traffic() as eager:
        torch.autograd.grad(out, (q, k, v), dout)
    run = on(Backward(1, 512, 64, 64, 64), solution_of(EXERCISE))
    assert round(eager.total_bytes / (8 * dout.nbytes)) == 12
    assert 3 < sum(run.measured.values()) / (8 * dout.nbytes) < 3.5
    assert (4 + 1) * 512**2 == 1.25 * 2**20 and (4 + 1) * 8192**2 == 320 * 2**20


def test_what_is_kept_in_bytes_and_seconds() -> None:
    heads, seq, d_head, tile = 32, 8192, 128, 64
    assert round(4 * heads * seq / 1e6) == 1
    assert round(2 * 2 * tile**2 / 2039e9 * 1e9) == 8
    assert round(2 * tile**2 * d_head / 312e12 * 1e9, 1) == 3.4


def test_the_forward_pass_is_torchs() -> None:
    q, k, v = (torch.randn(2, 37, 16) for _ in range(3))
    for causal in (True, False):
        out, lse = forward(q, k, v, causal)
        theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        torch.testing.assert_close(out, theirs)
        assert lse.shape == (2, 37) and bool(lse.isfinite().all())


@pytest.mark.parametrize("odd", [None, "text", float("nan"), torch.zeros(2, 3, 4), torch.full((1,), float("nan"))])
def test_a_judge_survives_what_is_no_result(odd: object) -> None:
    exercise = find(EXERCISE)
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 1)
    for got in (None, {"dq": odd, "dk": odd, "dv": odd}):
        verdict = judge(exercise, oracle_of(EXERCISE), [Observation(case, tree, got, tree)], n_cases=3)
        assert verdict.score == 0
