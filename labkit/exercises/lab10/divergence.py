"""Lab 10: what is asked, given and run for a kernel with an expensive branch that few threads take."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.simt.lanes import WARP
from labkit.spec import Answer, Case, Exercise, Run

UNTOUCHED = -(2**31)
"""What y holds before; no result is this."""


@dataclass(frozen=True)
class Mixture(Case):
    """n elements in blocks of `block` threads, of which one to `most` of each warp's are negative; 32: all."""

    n: int
    block: int
    most: int = 3

    @property
    def grid(self) -> int:
        return -(-self.n // self.block)


def mixture_inputs(case: Mixture, gen: torch.Generator) -> dict[str, torch.Tensor]:
    x = torch.randint(1, 2**20, (case.n,), generator=gen, dtype=torch.int32)
    for start in range(0, case.n, WARP):
        size = min(WARP, case.n - start)
        n_negative = WARP if case.most == WARP else int(torch.randint(1, case.most + 1, (), generator=gen))
        x[start + torch.randperm(size, generator=gen)[:n_negative]] *= -1
    return {"x": x}


def drive_mix(ans, case: Mixture, tree: dict, stage) -> dict[str, torch.Tensor]:
    y = torch.full((case.n,), UNTOUCHED, dtype=torch.int32)
    with stage.meter("cuda"):
        kernel_of(ans.mix, "mix").launch(case.grid, case.block, tree["x"], y, case.n)
    return {"y": y}


DIVERGENCE = Exercise(
    id="10-divergence",
    title="An expensive branch for few threads",
    points=0.4,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("mix", kind="text"),),
    public=(Mixture(512, 256), Mixture(1000, 256), Mixture(700, 128, 2), Mixture(256, 256, WARP)),
    inputs=mixture_inputs,
    drive=drive_mix,
    run=Run(cells=False),
    meters=("cuda",),
)
