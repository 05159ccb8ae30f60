"""Lab 10: what is asked, given and run for a histogram with four mistakes, mended."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run

BINS = 64


@dataclass(frozen=True)
class Values(Case):
    """n whole numbers below 64. different: how many different ones there are at most."""

    n: int
    grid: int
    block: int = 64
    different: int = BINS


def values_inputs(case: Values, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """The counts begin with what earlier launches have left."""
    chosen = torch.randperm(BINS, generator=gen)[: case.different]
    at = torch.randint(case.different, (case.n,), generator=gen)
    return {"x": chosen[at].int(), "counts": torch.randint(1, 1000, (BINS,), generator=gen).int()}


def drive_histogram(ans, case: Values, tree: dict, stage) -> dict[str, torch.Tensor]:
    counts = tree["counts"].clone()
    with stage.meter("cuda"):
        kernel_of(ans.histogram, "histogram").launch(case.grid, case.block, tree["x"], counts, case.n)
    return {"counts": counts}


HISTOGRAM = Exercise(
    id="10-histogram",
    title="A histogram with four mistakes",
    points=2,
    minutes=10,
    difficulty=2,
    answers=(Answer("histogram", kind="text"),),
    public=(Values(60, 1), Values(500, 8), Values(1000, 8, 128, different=3), Values(700, 4, 192)),
    inputs=values_inputs,
    drive=drive_histogram,
    run=Run(cells=False),
    meters=("cuda",),
)
