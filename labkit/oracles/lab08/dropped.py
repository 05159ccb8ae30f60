"""Lab 08, the dropout of a low-rank update: which elements of its input a layer dropped, read from what it returned.

Judged by properties: any generator and any order of drawing will do. The layer's other results are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab08.lora_linear import Layer, linear_of
from labkit.oracles.hints import once
from labkit.spec import CaseRun


@once
def mask_of(run: CaseRun[Layer]) -> torch.Tensor:
    """The factor that dropout put on every element of the input, (rows, n_in), recovered from the output.

    With rank and n_out beyond n_in the update has an inverse.
    """
    tree = run.tree
    update = run.case.scale * (tree["B"].double() @ tree["A"].double())
    base = linear_of(tree)(tree["many"]).detach().double()
    delta = run.got["dropped"].double() - base
    return torch.linalg.lstsq(update, delta.T).solution.T / tree["many"].double()


def drops_the_updates_input(run: CaseRun) -> str | None:
    """In training each element of the update's input is dropped by itself, or scaled by 1 / (1 - p)."""
    case = run.case
    if not case.dropout:
        return None
    mask, keep = mask_of(run), 1 - case.dropout
    kept = mask > 0.5 / keep
    if (mask - kept / keep).abs().max() > 0.01:
        return "in training, what the update adds is not that of an input whose elements are 0 or x / (1 - p)"
    if drops_together(kept):
        return "in training, whole rows or whole columns of the input are dropped together"
    share, spread = float(kept.double().mean()), (keep * case.dropout / kept.numel()) ** 0.5
    if abs(share - keep) > 6 * spread:
        return f"in training, {1 - share:.0%} of the elements are dropped; it should be {case.dropout:.0%}"
    return None


def drops_together(kept: torch.Tensor) -> bool:
    return bool((kept == kept[:, :1]).all() or (kept == kept[:1]).all())


def kept_at(value: Callable[[float], float]) -> Callable[[CaseRun[Layer]], bool]:
    """A hint's condition: dropout multiplies each element by 0 or by this function of p."""

    def holds(run: CaseRun[Layer]) -> bool:
        mask = mask_of(run)
        return torch.minimum(mask.abs(), (mask - value(run.case.dropout)).abs()).max() < 0.01

    return holds
