"""Lab 13, products in tiles: what the text says in figures, held by the solution, and a judge that nothing upsets."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import track_traffic
from labkit.check.judge import judge
from labkit.exercises import find
from labkit.exercises.lab13.matmul import Product
from labkit.observe import make_inputs
from labkit.oracles import oracle_of
from labkit.oracles.lab13.matmul import expected, least_loaded, stored_bytes
from labkit.oracles.lab13.matmul_mistakes import in_tf32, rounded_on_the_way
from labkit.spec import CaseRun, Observation
from tests.exercises.harness import answers_in, solution_of

A100_BYTES_PER_S, A100_FLOPS = 2039e9, 312e12


def all_bytes(n: int, tile: int) -> float:
    """Of an n × n × n product in float16, by the formula of the text."""
    case = Product(n, n, n, "float16", tile=tile)
    return least_loaded(CaseRun(case, {})) + stored_bytes(CaseRun(case, {}))


@pytest.mark.parametrize("tile, gigabytes", [(1, 275), (64, 4.3), (128, 2.2)])
def test_bytes_of_a_large_product(tile: int, gigabytes: float) -> None:
    assert all_bytes(4096, tile) / 1e9 == pytest.approx(gigabytes, rel=0.02)


def test_no_tile_alone_keeps_up_with_the_arithmetic() -> None:
    arithmetic_ms = 1e3 * 2 * 4096**3 / A100_FLOPS
    assert arithmetic_ms == pytest.approx(0.44, abs=0.005)
    assert 1e3 * all_bytes(4096, 1) / A100_BYTES_PER_S == pytest.approx(135, abs=0.5)
    assert 1e3 * all_bytes(4096, 128) / A100_BYTES_PER_S == pytest.approx(1.1, abs=0.05)


@pytest.mark.parametrize("case", [Product(70, 50, 33, tile=16), Product(70, 50, 33, tile=64)])
def test_the_solution_moves_what_the_formula_says(case: Product) -> None:
    matmul = answers_in("13-matmul", solution_of("13-matmul"))["matmul"]
    a, b = torch.randn(case.n_rows, case.n_inner), torch.randn(case.n_inner, case.n_cols)
    with track_traffic() as traffic:
        matmul(a, b, "ieee", case.tile)
    assert (traffic.load_bytes, traffic.store_bytes) == (
        least_loaded(CaseRun(case, {})),
        stored_bytes(CaseRun(case, {})),
    )


@pytest.mark.parametrize("diagnosis", [in_tf32, rounded_on_the_way])
def test_a_right_product_has_no_slip(diagnosis) -> None:
    exercise = find("13-matmul")
    for n, case in enumerate(exercise.public):
        tree = make_inputs(exercise, case, n)
        assert not diagnosis(CaseRun(case, tree, expected(CaseRun(case, tree)), expect=expected))


@pytest.mark.parametrize("odd", [None, "text", float("nan"), torch.zeros(2, 3, 4), torch.full((1,), float("nan"))])
def test_a_judge_survives_what_is_no_result(odd: object) -> None:
    exercise, oracle = find("13-matmul"), oracle_of("13-matmul")
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 1)
    for got in (None, {"out": odd}):
        verdict = judge(exercise, oracle, [Observation(case, tree, got, tree)], n_cases=len(exercise.public))
        assert verdict.score == 0
