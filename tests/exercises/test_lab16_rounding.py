"""Lab 16: right sharded layers stay within what their arithmetic rounds, however they add up; rounded gradients do not.

Played in one process, for each exercise over public cases and drawn ones. How answers are judged is tested with them.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from grading.hidden.lab16.fsdp import fsdp_cases
from grading.hidden.lab16.fsdp_unit import unit_cases
from labkit.exercises.lab16.fsdp import FSDP, Units
from labkit.exercises.lab16.fsdp_unit import FSDP_UNIT, Layers, draw_rows, draw_weight, rows_of, some
from labkit.observe import make_inputs
from labkit.oracles.lab16 import fsdp_roundings, unit_roundings
from labkit.oracles.lab16.fsdp_training import mean, trained
from labkit.oracles.lab16.fsdp_unit import expect
from labkit.spec import CaseRun, Exercise

pytestmark = pytest.mark.lab("16")
Product = Callable[[Tensor, Tensor], Tensor]


def runs_of(exercise: Exercise, drawn: tuple, expect=None) -> list[CaseRun]:
    return [
        CaseRun(case, make_inputs(exercise, case, seed), expect=expect)
        for seed, case in enumerate((*exercise.public, *drawn))
    ]


def first_to_last(a: Tensor, b: Tensor) -> Tensor:
    """A product whose sums have the plainest order, which rounds most."""
    out = torch.zeros(len(a), b.shape[1])
    for column, row in zip(a.t(), b):
        out += torch.outer(column, row)
    return out


def last_to_first(a: Tensor, b: Tensor) -> Tensor:
    return first_to_last(a.flip(1), b.flip(0))


def in_float64(a: Tensor, b: Tensor) -> Tensor:
    return (a.double() @ b.double()).float()


def layers_with(run: CaseRun[Layers], product: Product, sent: Callable[[Tensor], Tensor] = lambda grad: grad) -> list:
    """y and the gradients as ranks get them that multiply so, send so, and add up from the last rank to the first."""
    case = run.case
    weights = [draw_weight(case, run.tree["seed"], k) for k in range(len(case.shapes))]
    sums, found = [torch.zeros_like(weight) for weight in weights], []
    for one in reversed(run.tree["ranks"]):
        x, grad = draw_rows(case, one["seed"])
        kept = [x]
        for weight in weights:
            kept.append(product(kept[-1], weight.t()))
        for k in reversed(range(len(weights))):
            sums[k] += sent(product(grad.t(), kept[k])) / case.n_ranks
            grad = product(grad, weights[k])
        found.insert(0, {"y": kept[-1], "x": grad})
    for rank, one in enumerate(found):
        rows = [rows_of(total, case.n_ranks)[rank] for total in sums]
        one["shards"] = [None if k in case.frozen else some(row, case) for k, row in enumerate(rows)]
    return found


def apart(run: CaseRun[Layers], found: list) -> float:
    """The largest distance from what is expected, in units of the bound."""
    most = 0.0
    for wanted, got in zip(run.expected["ranks"], found, strict=True):
        pairs = [(wanted["y"], got["y"]), (wanted["x"], got["x"]), *zip(wanted["shards"], got["shards"], strict=True)]
        most = max(most, *(float((a - b).abs().max()) for a, b in pairs if a is not None))
    return most / unit_roundings.bound(run).atol


@pytest.fixture(scope="module")
def layers() -> list[CaseRun[Layers]]:
    return runs_of(FSDP_UNIT, unit_cases(random.Random(1)), expect)


@pytest.mark.slow
@pytest.mark.parametrize("product", [first_to_last, last_to_first, in_float64])
def test_layers_in_every_order_stay_far_within_the_bound(layers, product: Product) -> None:
    assert max(apart(run, layers_with(run, product)) for run in layers) < 0.3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weight_gradients_of_16_bits_leave_it(layers, dtype: torch.dtype) -> None:
    """Wherever a rank has something to add to, and no sum has hundreds of terms."""
    seen = [run for run in layers if run.case.n_ranks > 1 and max(run.case.widths) < 100]
    assert len(seen) > 6
    for run in seen:
        assert apart(run, layers_with(run, torch.mm, lambda grad: grad.to(dtype).float())) > 3


def from_last_to_first(grads: list[Tensor], case: Units) -> Tensor:
    return sum(grad.to(case.dtypes[1]) for grad in reversed(grads)).float() / case.n_ranks


def divided_first(grads: list[Tensor], case: Units) -> Tensor:
    return sum(grad.to(case.dtypes[1]) / case.n_ranks for grad in grads).float()


def in_16_bits(grads: list[Tensor], case: Units) -> Tensor:
    return mean([grad.to(torch.float16) for grad in grads], case)


def masters_apart(run: CaseRun[Units], reduce) -> float:
    bound = fsdp_roundings.bound(run)
    both = zip(trained(run, mean), trained(run, reduce), strict=True)
    pairs = [pair for right, other in both for pair in zip(right, other, strict=True)]
    return max(float(((a - b).abs() / (bound.atol + bound.rtol * a.abs())).max()) for a, b in pairs)


@pytest.fixture(scope="module")
def models() -> list[CaseRun[Units]]:
    return [run for run in runs_of(FSDP, fsdp_cases(random.Random(1))) if run.case.width < 100]


@pytest.mark.slow
@pytest.mark.parametrize("reduce", [from_last_to_first, divided_first])
def test_models_in_every_order_stay_far_within_the_bound(models, reduce) -> None:
    assert max(masters_apart(run, reduce) for run in models) < 0.5


def test_model_gradients_of_16_bits_leave_it(models) -> None:
    """Where all is in float32. bfloat16 has fewer bits than float16: there they change nothing."""
    seen = [run for run in models if run.case.param_dtype == "float32" and run.case.n_ranks > 1]
    assert len(seen) > 4
    for run in seen:
        assert masters_apart(run, in_16_bits) > 3
