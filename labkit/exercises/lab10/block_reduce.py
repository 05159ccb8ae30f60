"""Lab 10: what is asked, given and run for the sums of blocks, once with barriers and once with shuffles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run
from labkit.unwritten import unwritten_floats


@dataclass(frozen=True)
class Sums(Case):
    """n elements, of which each thread of the blocks has one."""

    kernel: Literal["block_sum", "shuffle_sum"]
    n: int
    block: int

    @property
    def grid(self) -> int:
        return -(-self.n // self.block)

    @property
    def warps(self) -> int:
        """In a block."""
        return self.block // 32


def sums_inputs(case: Sums, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Whole numbers, so that every order of adding gives the same; all positive, so that what is left out shows."""
    return {"x": torch.randint(1, 1000, (case.n,), generator=gen).float()}


def drive_sums(ans, case: Sums, tree: dict, stage) -> dict[str, torch.Tensor]:
    out = unwritten_floats(case.grid)
    with stage.meter("cuda"):
        kernel_of(getattr(ans, case.kernel), case.kernel).launch(case.grid, case.block, tree["x"], out, case.n)
    return {"out": out}


BLOCK_REDUCE = Exercise(
    id="10-block-reduce",
    title="The sum of a block, with barriers and with shuffles",
    points=4,
    minutes=25,
    difficulty=3,
    answers=(Answer("block_sum", kind="text"), Answer("shuffle_sum", kind="text")),
    public=(
        Sums("block_sum", 512, 128),
        Sums("block_sum", 1000, 256),
        Sums("block_sum", 40, 64),
        Sums("shuffle_sum", 512, 128),
        Sums("shuffle_sum", 1000, 96),
        Sums("shuffle_sum", 3000, 1024),
    ),
    inputs=sums_inputs,
    drive=drive_sums,
    run=Run(cells=False),
    meters=("cuda",),
)
