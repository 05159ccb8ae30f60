"""Lab 08, the layer with a low-rank update: what the usual mistakes look like in its factors, output and gradients.

The right values are those of peft's layer, in lora_linear.py.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from labkit.exercises.lab08.lora_linear import Layer
from labkit.spec import CANNOT_TELL, CaseRun, Tolerance

CLOSE = Tolerance(atol=1e-4, rtol=1e-4)
"""float32 sums of some hundred terms, in any order, that come to size 1; a mistake is off by more than 1 %."""
CLOSE_IN_BFLOAT16 = Tolerance(atol=0.06, rtol=0.02)
"""The base's output, the middle, the update and the sum, each rounded to 8 bits."""


def near(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """As close as the coarser of the two dtypes allows."""
    close = CLOSE_IN_BFLOAT16 if torch.bfloat16 in (got.dtype, wanted.dtype) else Tolerance(1e-3, 1e-3)
    return got.shape == wanted.shape and torch.allclose(got.double(), wanted.double(), atol=close.atol, rtol=close.rtol)


def weight_with(run: CaseRun[Layer], factor: float) -> torch.Tensor:
    return run.tree["weight"] + factor * (run.tree["B"] @ run.tree["A"])


def y_with(run: CaseRun[Layer], factor: float, biases: float = 1) -> torch.Tensor:
    bias = None if run.tree["bias"] is None else biases * run.tree["bias"]
    return nn.functional.linear(run.tree["x"], weight_with(run, factor), bias)


def without_scale(run: CaseRun[Layer]) -> object:
    """The update counts once. With alpha // rank it does as well where that is 1."""
    unscaled = near(run.got["y"], y_with(run, 1.0))
    return CANNOT_TELL if unscaled and (run.case.scale == 1 or run.case.alpha // run.case.rank == 1) else unscaled


def scaled_by_alpha(run: CaseRun[Layer]) -> object:
    by_alpha = near(run.got["y"], y_with(run, run.case.alpha))
    return CANNOT_TELL if by_alpha and run.case.rank == 1 else by_alpha


def right(run: CaseRun[Layer], y: torch.Tensor) -> bool:
    return near(y, y_with(run, run.case.scale))


def scaled_otherwise(run: CaseRun[Layer]) -> bool:
    """The output has a multiple of the update that is neither none nor the right one."""
    base, update = y_with(run, 0), y_with(run, 1) - y_with(run, 0)
    factor = ((run.got["y"] - base) * update).sum() / update.square().sum()
    return not right(run, run.got["y"]) and near(run.got["y"], base + factor * update)


def gradient_is(weight: Callable[[CaseRun[Layer]], torch.Tensor]) -> Callable[[CaseRun[Layer]], bool]:
    """A hint's condition: the gradient of x is that of a layer with another weight."""
    return lambda run: (
        not near(run.got["grads"]["x"], run.tree["grad"] @ weight_with(run, run.case.scale))
        and near(run.got["unmerged_weight"], run.tree["weight"])
        and near(run.got["grads"]["x"], run.tree["grad"] @ weight(run))
    )


def starts_random(run: CaseRun) -> str | None:
    """The first factor of a new layer: random, of a size that neither drowns nor explodes."""
    size = float(run.got["initial_A"].std())
    if not 0.02 / run.case.n_in**0.5 < size < 3:
        return f"the values of a new lora_A have a standard deviation of {size:.3g}"
    return None
