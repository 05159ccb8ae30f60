"""Lab 06: the figures that the notebook quotes of maps, rounding and Muon come out of what it calls."""

from __future__ import annotations

import pytest
import torch

from labkit.exercises.lab06.adam8bit import EightBitSteps, adam8bit_inputs
from labkit.exercises.lab06.muon import polynomial
from labkit.figures.weight_steps import LEFT, LIFTED, stalled_share
from labkit.material import lab06
from labkit.oracles.lab06.adam8bit import MOST_OFF
from labkit.oracles.lab06.eight_bits import deviation, history
from labkit.oracles.lab06.muon_mistakes import ExactMuon
from labkit.spec import CaseRun
from tests.exercises.harness import answers_in, solution_of


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("make", [lab06.linear_map, lab06.dynamic_map])
def test_a_map_has_256_values_in_order_one_of_them_0(make, signed: bool) -> None:
    values = make(signed)
    assert values.dtype == torch.float32 and len(values) == 256
    assert (values.diff() > 0).all() and (values == 0).sum() == 1
    assert values[-1] == 1 and (values[0] < -0.99 if signed else values[0] == 0)


def test_84_percent_of_the_weights_stall_at_1e_5_and_none_at_1e_3() -> None:
    assert stalled_share(1e-5) == pytest.approx(0.845, abs=0.005)
    assert stalled_share(1e-3) < 0.001


def test_stochastic_rounding_gives_neighbours_and_is_right_on_average() -> None:
    x = torch.tensor([1.001, -0.3, 0.02, 1.0, 0.0]).repeat(20_000, 1)
    rounded = lab06.stochastic_round(x, torch.Generator().manual_seed(0)).double()
    gap = torch.tensor([2.0**-7, 2.0**-9, 2.0**-13, 1, 1]).double()
    assert ((rounded - x).abs() < gap).all()
    assert ((rounded.mean(0) - x[0]).abs() < 0.02 * gap).all()
    assert torch.equal(rounded[:, 3:], x[:, 3:].double())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beta2", [0.9, 0.999])
def test_a_signed_map_for_the_second_moment_is_past_the_bound_at_every_draw(beta2: float, seed: int) -> None:
    case = EightBitSteps(n_steps=8, n_tokens=64, width=64, beta1=0.0, beta2=beta2)
    run = CaseRun(case, adam8bit_inputs(case, torch.Generator().manual_seed(seed)))
    off = {name: deviation(history(run, name), history(run, "exact"), case.lr) for name in ("", "signed exp_avg_sq")}
    assert 1.2 * MOST_OFF < off["signed exp_avg_sq"] / off[""] < 2.2


def steps_after_ten(code_map: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Sizes of gradients from 1e-4 to 1, and the step of each as a share of the one with an exact second moment."""
    answers = answers_in("06-adam8bit", solution_of("06-adam8bit"))
    sizes = torch.logspace(-4, 0, 256)
    exact, stored = torch.zeros(256), torch.zeros(256)
    for _ in range(9):
        exact, stored = (0.999 * square + 0.001 * sizes**2 for square in (exact, stored))
        stored = answers["dequantize"](answers["quantize"](stored, code_map), code_map, (256,))
    below = [(0.999 * square / (1 - 0.999**10)).sqrt() + 1e-8 for square in (exact, stored)]
    return sizes, below[0] / below[1]


def test_the_linear_map_ruins_what_is_below_4_percent_of_the_largest() -> None:
    sizes, share = steps_after_ten(lab06.linear_map(False))
    assert sizes[share > 10].max().item() == pytest.approx(0.043, abs=0.002)
    assert 0.89 * share.max() == pytest.approx(3.7e6, rel=0.02)


def test_the_dynamic_map_does_so_a_hundred_times_further_down() -> None:
    sizes, share = steps_after_ten(lab06.dynamic_map(False))
    assert sizes[share > 10].max().item() == pytest.approx(4e-4, abs=2e-5)
    assert (share[sizes > 0.01] - 1).abs().max() < 0.08
    assert (share[sizes > 4.1e-4] - 1).abs().max() < 0.34


def test_five_steps_bring_singular_values_from_0_01_on_into_the_band_that_the_notebook_names() -> None:
    values = polynomial(torch.linspace(0.01, 1, 100_000, dtype=torch.float64))
    assert values.min() == pytest.approx(LIFTED, abs=0.005) and values.max() == pytest.approx(LEFT, abs=0.005)
    assert polynomial(torch.tensor([1e-6], dtype=torch.float64)).item() == pytest.approx(485e-6, rel=1e-3)


@pytest.mark.parametrize("rule", ["original", "match_rms_adamw"])
@pytest.mark.parametrize("shape", [(64, 64), (64, 256), (256, 64)])
def test_exact_steps_of_muon_are_within_2_percent_of_torchs_which_iterates_in_bfloat16(rule: str, shape) -> None:
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    exact, theirs = (torch.nn.Parameter(torch.zeros(shape)) for _ in range(2))
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.0}
    for weight, optimizer in (
        (exact, ExactMuon([{"params": [exact]}], adjust=rule, **settings)),
        (theirs, torch.optim.Muon([theirs], adjust_lr_fn=rule, **settings)),
    ):
        weight.grad = grad.clone()
        optimizer.step()
    assert (exact - theirs).norm() < 0.02 * exact.norm()
