"""Lab 10: what is asked, given and run for the prefix sums of a block."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run
from labkit.unwritten import unwritten_floats

PER_THREAD = 8
MOST_THREADS = 256


@dataclass(frozen=True)
class Prefix(Case):
    """n elements; each block sums up its own 8 · `block` of them."""

    n: int
    block: int

    @property
    def piece(self) -> int:
        return PER_THREAD * self.block

    @property
    def n_blocks(self) -> int:
        return -(-self.n // self.piece)


def scan_inputs(case: Prefix, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Small whole numbers, so that nothing is rounded, and none is zero."""
    return {"x": torch.randint(1, 10, (case.n,), generator=gen).float()}


def drive_scan(ans, case: Prefix, tree: dict, stage) -> dict[str, torch.Tensor]:
    y = unwritten_floats(case.n)
    with stage.meter("cuda"):
        kernel_of(ans.scan, "scan").launch(case.n_blocks, case.block, tree["x"], y, case.n)
    return {"y": y}


SCAN = Exercise(
    id="10-scan",
    title="Prefix sums of a block",
    points=0.4,
    optional=True,
    minutes=25,
    difficulty=3,
    answers=(Answer("scan", kind="text"),),
    public=(Prefix(256, 32), Prefix(1024, 128), Prefix(700, 64), Prefix(4500, 256)),
    inputs=scan_inputs,
    drive=drive_scan,
    run=Run(cells=False),
    meters=("cuda",),
)
