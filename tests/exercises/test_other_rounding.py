"""The solutions pass where float32 is rounded otherwise: on a GPU, on another processor, with another library.

Played on the CPU: what sums or approximates is moved by a unit in the last place. Where an exercise asks for bits, its
operations are exact everywhere, and are left alone here.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from labkit import exercises
from labkit.check.api import examine
from labkit.compare import compare
from labkit.devices import seed_all
from labkit.oracles import oracle_of
from labkit.spec import Tolerance
from tests.exercises.harness import answers_in, solution_of

PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution", "convolution_backward"}
SUMS = {"sum", "mean", "norm", "linalg_vector_norm", "var", "var_mean", "std", "logsumexp", "cumsum", "prod"}
SUMS |= {"native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward"}
SUMS |= {"_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data", "nll_loss_forward"}
APPROXIMATED = {"tanh", "gelu", "silu", "sigmoid", "erf", "softplus", "exp", "expm1", "log", "log2", "sin", "cos"}
APPROXIMATED |= {"pow", "rsqrt", "tanh_backward", "gelu_backward", "silu_backward", "sigmoid_backward", "mse_loss"}
ROUNDED = PRODUCTS | SUMS | APPROXIMATED
"""Operations of PyTorch whose last bits depend on where they run. Sums, products and roots of elements do not."""
UNIT = 2.0**-23


class OtherRounding(TorchDispatchMode):
    """Moves results by up to a unit in the last place, the same operation on the same shape always alike."""

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if str(func).split(".")[1] in ROUNDED:
            for one in out if isinstance(out, tuple) else (out,):
                if isinstance(one, torch.Tensor) and one.dtype == torch.float32 and type(one) is torch.Tensor:
                    moves = torch.randint(-1, 2, one.shape, generator=torch.Generator().manual_seed(one.numel()))
                    one.detach().mul_(1 + UNIT * moves)
        return out


def on_the_device() -> list[str]:
    """Ids of the exercises whose driver puts tensors where the GPU is, if there is one."""
    found = []
    for exercise_id, exercise in exercises.everything().items():
        source = inspect.getsource(inspect.getmodule(inspect.unwrap(exercise.drive)))
        if "stage.device" in source and exercise.run.ranks == 1:
            found.append(exercise_id)
    return found


QUICK = ("05-segments", "05-selective")


@pytest.mark.parametrize(
    "exercise_id",
    [
        one if one in QUICK else pytest.param(one, marks=[pytest.mark.full("answers"), pytest.mark.lab(one[:2])])
        for one in on_the_device()
    ],
)
def test_the_solution_passes_where_rounding_is_another(exercise_id: str) -> None:
    exercise, source = exercises.find(exercise_id), solution_of(exercise_id)

    def drive(ans, case, tree, stage):
        with OtherRounding():
            return exercise.drive(ans, case, tree, stage)

    verdict = examine(replace(exercise, drive=drive), oracle_of(exercise_id), answers_in(exercise_id, source), [source])
    assert verdict.passed, verdict


def test_the_other_rounding_is_one() -> None:
    """The control: the mode changes a product, a little, and the same way twice."""
    seed_all(0)
    a, b = torch.randn(2, 50, 50)
    with OtherRounding():
        first, second = a @ b, a @ b
    assert torch.equal(first, second) and not torch.equal(first, a @ b)
    assert compare(a @ b, first, Tolerance(rtol=3 * UNIT)) is None


def test_a_tolerance_may_be_a_part_of_the_largest_element() -> None:
    expected = torch.tensor([100.0, 1e-3, float("nan"), float("inf")])
    got = expected + torch.tensor([0.0, 0.9e-2, 0.0, 0.0])
    assert compare(expected, got, Tolerance(of_largest=1e-4)) is None
    found = compare(expected, got + torch.tensor([0.0, 0.2e-2, 0.0, 0.0]), Tolerance(of_largest=1e-4))
    assert found.index == (1,) and found.tolerance == Tolerance(atol=1e-2)
    assert compare(2.0, 2.01, Tolerance(of_largest=1e-2)) is None and compare(2.0, 2.03, Tolerance(of_largest=1e-2))
