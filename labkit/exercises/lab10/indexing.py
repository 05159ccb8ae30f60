"""Lab 10: what is asked, given and run for a kernel with a thread for each element of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Image(Case):
    """spare: further blocks along x and y, more than the matrix needs."""

    rows: int
    cols: int
    block: tuple[int, int] = (32, 8)
    spare: tuple[int, int] = (0, 0)

    @property
    def grid(self) -> tuple[int, int]:
        return -(-self.cols // self.block[0]) + self.spare[0], -(-self.rows // self.block[1]) + self.spare[1]


def image_inputs(case: Image, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Small whole numbers, so that every order of adding gives the same; no element stays what it is."""
    return {
        "image": torch.randint(1, 50, (case.rows, case.cols), generator=gen).float(),
        "gain": torch.randint(2, 9, (case.rows,), generator=gen).float(),
        "bias": torch.randint(100, 900, (case.cols,), generator=gen).float(),
    }


def drive_adjust(ans, case: Image, tree: dict, stage) -> dict[str, torch.Tensor]:
    image = tree["image"].clone()
    with stage.meter("cuda"):
        kernel = kernel_of(ans.adjust, "adjust")
        kernel.launch(case.grid, case.block, image, tree["gain"], tree["bias"], case.rows, case.cols)
    return {"image": image}


INDEXING = Exercise(
    id="10-indexing",
    title="A thread for each element of a matrix",
    points=2,
    minutes=15,
    difficulty=1,
    answers=(Answer("adjust", kind="text"),),
    public=(
        Image(30, 64),
        Image(33, 70),
        Image(70, 33, (16, 16)),
        Image(40, 12, (8, 4), spare=(2, 1)),
        Image(3, 100, (64, 2)),
    ),
    inputs=image_inputs,
    drive=drive_adjust,
    run=Run(cells=False),
    meters=("cuda",),
)
