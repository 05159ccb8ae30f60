"""Lab 00, first half: the warm-up."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Tree


@dataclass(frozen=True)
class Activations(Case):
    """Normally distributed values around `0.5 * scale` with standard deviation `scale`, reduced along `dim`.

    zero_row: one row along `dim` is all zeros. faint_row: the values of one are 10^8 times smaller, so that no single
    factor brings the squares of all rows into float16's range.
    """

    shape: tuple[int, ...] = (4, 8)
    dim: int = -1
    dtype: str = "float32"
    scale: float = 1.0
    zero_row: bool = False
    faint_row: bool = False


def _inputs(case: Activations, generator: torch.Generator) -> Tree:
    # Away from zero, so that a standard deviation is no root-mean-square.
    x = (torch.randn(case.shape, generator=generator) + 0.5) * case.scale
    if case.zero_row:
        x.movedim(case.dim, -1)[1] = 0.0
    if case.faint_row:
        x.movedim(case.dim, -1)[1] *= 1e-8
    return {"x": x.to(getattr(torch, case.dtype))}


WARM_UP = Exercise(
    id="00-warm-up",
    title="Root-mean-square along an axis",
    points=1,
    minutes=8,
    difficulty=1,
    answers=(Answer("rms"),),
    public=(
        Activations(),
        Activations((5, 3), dim=0),
        Activations((2, 3, 4), dim=-2),
        Activations((3, 5, 64), dtype="bfloat16"),
        Activations((3, 8), zero_row=True),
        Activations((4, 16), dtype="float16"),
        # The square root of the sum leaves float16's range as well.
        Activations((4, 80), dtype="float16", scale=9000.0, faint_row=True),
        Activations((16, 4), dim=0, dtype="float16", scale=1e-4),
    ),
    inputs=_inputs,
    drive=lambda ans, case, tree, stage: {"out": ans.rms(tree["x"], case.dim)},
)
