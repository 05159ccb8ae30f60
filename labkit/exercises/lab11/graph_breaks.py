"""Lab 11: a model with five obstacles, rewritten so that it is one graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab11.broken import BrokenModel
from labkit.exercises.lab11.compiler import fresh_compiler
from labkit.spec import Answer, Case, Exercise, Run, Tree


@dataclass(frozen=True)
class Rewritten(Case):
    """Batches of one size, one after the other. growth: how much the layers make of what they get."""

    n_rows: int = 4
    width: int = 8
    n_layers: int = 2
    n_batches: int = 2
    growth: float = 1.0


def rewritten_inputs(case: Rewritten, gen: torch.Generator) -> Tree:
    names = BrokenModel(case.width, case.n_layers).state_dict()
    scale = case.growth / case.width**0.5
    shape = (case.n_batches, case.n_rows, case.width)
    return {
        "weights": {name: scale * torch.randn(value.shape, generator=gen) for name, value in names.items()},
        "batches": 3 * torch.randn(shape, generator=gen),
        "noise": torch.randn(shape, generator=gen),
    }


def drive_graph_breaks(ans, case: Rewritten, tree: dict, stage) -> Tree:
    """The results and the means after each batch, called as in training; graphs, breaks and operations are counted.

    requires_grad: whether the buffer has become part of an autograd graph, which then holds those of all calls.
    """
    with fresh_compiler(), torch.enable_grad():
        model = ans.OneGraph(case.width, case.n_layers)
        model.load_state_dict(tree["weights"])
        results, means = [], []
        with stage.meter("compile"):
            compiled = torch.compile(model, backend="eager")
            for batch, noise in zip(tree["batches"], tree["noise"], strict=True):
                results.append(compiled(batch, noise).detach().clone())
                means.append(model.mean.detach().clone())
        return {"results": results, "means": means, "requires_grad": model.mean.requires_grad}


GRAPH_BREAKS = Exercise(
    id="11-graph-breaks",
    title="A model in one graph",
    points=4,
    minutes=35,
    difficulty=2,
    answers=(Answer("OneGraph"),),
    public=(
        Rewritten(n_layers=1, growth=0.3),
        Rewritten(n_layers=1, growth=5.0),
        Rewritten(n_layers=3, n_batches=4),
        Rewritten(n_rows=1, width=5),
    ),
    inputs=rewritten_inputs,
    drive=drive_graph_breaks,
    run=Run(wall_s=30.0),
    meters=("compile",),
)
