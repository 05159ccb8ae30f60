"""Lab 10: what is asked, given and run for a transpose in tiles, of which the sectors count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run
from labkit.unwritten import unwritten_floats

SIDE = 32
BLOCK = (SIDE, 8)


@dataclass(frozen=True)
class Matrix(Case):
    rows: int
    cols: int

    @property
    def grid(self) -> tuple[int, int]:
        """A block for each tile of the matrix that is read."""
        return -(-self.cols // SIDE), -(-self.rows // SIDE)


def matrix_inputs(case: Matrix, gen: torch.Generator) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(case.rows, case.cols, generator=gen)}


def drive_transpose(name: str) -> Callable[..., dict[str, torch.Tensor]]:
    """name: of the kernel, and of the answer that defines it."""

    def drive(ans, case: Matrix, tree: dict, stage) -> dict[str, torch.Tensor]:
        out = unwritten_floats(case.cols, case.rows)
        with stage.meter("cuda"):
            kernel = kernel_of(getattr(ans, name), name)
            kernel.launch(case.grid, BLOCK, tree["x"], out, case.rows, case.cols)
        return {"y": out}

    return drive


TILE = Exercise(
    id="10-tile",
    title="A transpose through shared memory",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("tiled_transpose", kind="text"),),
    public=(Matrix(64, 64), Matrix(32, 96), Matrix(33, 40), Matrix(70, 45)),
    inputs=matrix_inputs,
    drive=drive_transpose("tiled_transpose"),
    run=Run(cells=False),
    meters=("cuda",),
)
