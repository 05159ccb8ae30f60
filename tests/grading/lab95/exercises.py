"""Lab 95, first half: kernels in CUDA C++; copied into the worker's tree by the tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run

ORDER = ("transpose",)
TILE = 32


@dataclass(frozen=True)
class Matrix(Case):
    rows: int = 32
    cols: int = 64


def _drive(ans, case, tree, stage):
    out = torch.full((case.cols, case.rows), float("nan"))
    grid = (-(-case.cols // TILE), -(-case.rows // TILE))
    with stage.meter("cuda"):
        kernel_of(ans.transpose, "transpose").launch(grid, (TILE, 8), tree["x"], out, case.rows, case.cols)
    return {"out": out}


TRANSPOSE = Exercise(
    id="95-transpose",
    title="A transpose through shared memory",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("transpose", kind="text"),),
    public=(Matrix(), Matrix(33, 40)),
    inputs=lambda case, gen: {"x": torch.randn(case.rows, case.cols, generator=gen)},
    drive=_drive,
    run=Run(cells=False),
    meters=("cuda",),
)
