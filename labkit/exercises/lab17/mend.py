"""Lab 17: what is asked, given and run for a text with a planted bug: what comes after the backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab17.composed import Layout, OneRank, draw
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Finished(Case):
    """A run of data groups of `tensor` ranks, in which the answer finishes the gradients."""

    tensor: int = 4
    data: int = 2
    kv_heads: int = 2
    tied: bool = False

    @property
    def layout(self) -> Layout:
        return Layout(self.tensor, self.data, self.kv_heads, self.tied)


def seed(case: Finished, gen: torch.Generator) -> dict[str, Any]:
    """Of the weights and batches, which every rank can draw."""
    return {"seed": int(torch.randint(2**40, (), generator=gen))}


def drive_mend(ans, case: Finished, tree: dict, stage) -> dict[str, Any]:
    """grads: by name, as the optimizer would get them; those that are gone are left out."""
    weights, batches = draw(case.layout, torch.Generator().manual_seed(tree["seed"]))
    grads = OneRank(case.layout, stage.comm).gradients(weights, batches, ans.finish_gradients)
    return {"grads": dict(grads)}


MEND = Exercise(
    id="17-mend",
    title="Mend what blame has found",
    points=2,
    minutes=10,
    difficulty=1,
    answers=(Answer("finish_gradients"),),
    public=(Finished(), Finished(3, 2, 3, tied=True), Finished(2, 3, 2), Finished(1, 2, 1)),
    inputs=seed,
    drive=drive_mend,
    run=Run(ranks=lambda case: case.layout.n_ranks, wall_s=40.0),
)
