"""Lab 10: what is asked, given and run for a kernel whose threads have several elements each."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Axpy(Case):
    """n elements, of which each of the grid's threads gets several."""

    n: int
    grid: int = 4
    block: int = 64


def axpy_inputs(case: Axpy, gen: torch.Generator) -> dict[str, object]:
    """Small whole numbers, so that nothing is rounded."""
    return {
        "a": 3.0,
        "x": torch.randint(1, 50, (case.n,), generator=gen).float(),
        "y": torch.randint(100, 900, (case.n,), generator=gen).float(),
    }


def drive_axpy(ans, case: Axpy, tree: dict, stage) -> dict[str, torch.Tensor]:
    y = tree["y"].clone()
    with stage.meter("cuda"):
        kernel_of(ans.axpy, "axpy").launch(case.grid, case.block, tree["a"], tree["x"], y, case.n)
    return {"y": y}


COALESCING = Exercise(
    id="10-coalescing",
    title="A kernel that touches no sector twice",
    points=2,
    minutes=10,
    difficulty=2,
    answers=(Answer("axpy", kind="text"),),
    public=(Axpy(2048), Axpy(3000, 6, 32), Axpy(1999), Axpy(5000, 3, 96)),
    inputs=axpy_inputs,
    drive=drive_axpy,
    run=Run(cells=False),
    meters=("cuda",),
)
