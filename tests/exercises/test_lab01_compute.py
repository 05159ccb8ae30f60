"""Lab 01: the figures that lectures and papers quote come out of the solution, to the digit that they print."""

from __future__ import annotations

import pytest

from labkit.oracles.lab01.arithmetic_intensity import cost_of
from labkit.oracles.lab01.training_flops import attention_flops, iteration_flops
from tests.exercises.harness import answers_in, solution_of


@pytest.fixture(scope="module")
def ans() -> dict:
    found: dict = {}
    for exercise_id in ("01-arithmetic-intensity", "01-compute-days"):
        found |= answers_in(exercise_id, solution_of(exercise_id))
    return found


@pytest.mark.parametrize(
    ("n_sms", "fma_per_clock", "clock_ghz", "tera"),
    [
        (108, 512, 1.41, 156),  # A100, TF32
        (108, 1024, 1.41, 312),
        (108, 2048, 1.41, 624),  # INT8
        (80, 512, 1.53, 125),  # V100
        (40, 512, 1.59, 65),  # T4
        (40, 2048, 1.59, 260),  # T4, INT4
        (132, 2048, 1.83, 989),  # H100
        (132, 4096, 1.83, 1979),  # H100, INT8 and FP8
    ],
)
def test_the_published_peak_rates(ans: dict, n_sms: int, fma_per_clock: int, clock_ghz: float, tera: int) -> None:
    assert ans["peak_flops"](n_sms, fma_per_clock, clock_ghz * 1e9) == pytest.approx(1e12 * tera, rel=5e-3)


def test_the_quoted_intensities(ans: dict) -> None:
    def intensity(*arguments) -> float:
        flops, n_bytes = ans["operator_cost"](*arguments)
        return flops / n_bytes

    assert intensity("add", 1000, 1000, 0, 2) == pytest.approx(1 / 6)
    assert round(intensity("linear", 1024, 1024, 1024, 2)) == 341
    threshold, slip = 312e12 / 2039e9, 312e12 / (2039 * 2**30)
    assert (round(threshold), round(slip)) == (153, 143)
    for n_bytes, bound in ((1e9 / threshold * 0.99, "compute"), (1e9 / threshold * 1.01, "memory")):
        assert ans["least_time"](1e9, n_bytes, 312e12, 2039e9)[1] == bound


def test_the_solution_counts_as_the_library_does(ans: dict) -> None:
    for arguments in (("linear", 7, 33, 129, 4), ("layernorm", 7, 33, 0, 2), ("softmax", 3, 5, 0, 4)):
        assert ans["operator_cost"](*arguments) == cost_of(*arguments)


def test_gpt_3_takes_72_days_with_recomputation_and_54_without(ans: dict) -> None:
    run = (175e9, 300e9, 480, 140e12)
    assert round(ans["training_days"](*run, True), 1) == 72.3
    assert round(ans["training_days"](*run, False), 1) == 54.3
    # All three terms; by the batch it does not matter.
    flops = 300e9 / 2048 * ans["flops_per_iteration"](1, 2048, 96, 12288, 51200, True)
    assert round(flops / (480 * 140e12) / 86400, 1) == 74.1


@pytest.mark.parametrize("shape", [(2, 1024, 2, 768, 50257), (1, 512, 4, 384, 4096), (3, 256, 2, 512, 1000)])
def test_the_formula_of_the_lab_is_what_pytorch_counts(ans: dict, shape: tuple[int, ...]) -> None:
    batch, seq, n_layers, hidden, vocab = shape
    terms = 1 + seq / (6 * hidden) + vocab / (16 * n_layers * hidden)
    assert iteration_flops(*shape, True) == pytest.approx(96 * batch * seq * n_layers * hidden**2 * terms)
    for recompute in (True, False):
        assert ans["flops_per_iteration"](*shape, recompute) == pytest.approx(iteration_flops(*shape, recompute))


@pytest.mark.parametrize(
    ("n_params", "gpu_hours", "percent", "million_dollars"),
    [(8e9, 1.46e6, 13.9, 2.92), (70e9, 7.0e6, 25.3, 14.0), (405e9, 30.84e6, 33.2, 61.68)],
)
def test_llamas_published_gpu_hours(
    ans: dict, n_params: float, gpu_hours: float, percent: float, million_dollars: float
) -> None:
    assert round(100 * ans["mfu"](n_params, 15e12, gpu_hours, 989e12), 1) == percent
    assert ans["training_dollars"](gpu_hours / 24, 1, 2.0) == pytest.approx(1e6 * million_dollars)


def test_years_on_one_v100_and_months_on_512(ans: dict) -> None:
    """288 years are those of 8TP at 37 % of the peak rate."""
    rate = ans["training_days"](175e9, 300e9, 1, 1.0, True) / (288 * 365)
    assert rate / 125e12 == pytest.approx(0.37, abs=0.005)
    assert ans["training_days"](175e9, 300e9, 8, rate, True) / 365 == pytest.approx(36)
    assert round(ans["training_days"](175e9, 300e9, 512, rate, True) / 30.4) == 7


def test_how_far_off_the_formula_is_elsewhere(ans: dict) -> None:
    """The notebook's small models: a counter blind to fused attention, and Llama's layer with one key-value head."""
    batch, seq, n_layers, hidden, _ = shape = (1, 64, 4, 48, 512)
    by_formula = ans["flops_per_iteration"](*shape, True)
    attention = n_layers * (attention_flops(batch, seq, hidden, True) + attention_flops(batch, seq, hidden, False))
    assert round((by_formula - attention) / by_formula, 2) == 0.84
    weights = 2 + 2 / 6 + 3 * 3  # query and output; key and value of one head of six; gate, up and down of width 3h
    fewer = (12 - weights) * hidden**2 * n_layers * 8 * batch * seq
    assert round((by_formula - fewer) / by_formula, 2) == 0.96


def test_megatrons_percent_of_peak_and_what_mfu_makes_of_it(ans: dict) -> None:
    for n_params, n_layers, hidden, batch, achieved, percent in (
        (1.7e9, 24, 2304, 512, 137e12, 44),
        (145.6e9, 80, 12288, 2304, 148e12, 47),
        (1008e9, 128, 25600, 3072, 163e12, 52),
    ):
        gpu_hours = ans["flops_per_iteration"](batch, 2048, n_layers, hidden, 51200, True) / achieved / 3600
        assert round(100 * achieved / 312e12) == percent
        assert 0.68 < ans["mfu"](n_params, batch * 2048, gpu_hours, 312e12) / (achieved / 312e12) <= 0.75
