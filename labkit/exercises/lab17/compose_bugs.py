"""Lab 17: what is asked, given and run for finding a bug by comparing gradients with those of one process.

What is planted where is drawn in `inputs`, so that a process that runs an answer on hidden cases does not know it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from labkit.exercises.lab17.composed import Layout, draw, on_ranks, one_process, parts
from labkit.exercises.lab17.planted import KINDS, NONE, SITES, Bug
from labkit.spec import Answer, Case, Exercise, Run

REPLICAS, TIES, CLIPPED = "replicas not summed", "ties not summed", "clipped locally"


@dataclass(frozen=True)
class Runs(Case):
    """Runs on data groups of `tensor` ranks. bugs: (kind, parameter) of each, where the case may tell; else of every
    kind one, and a run without a bug, in an order and at parameters that are drawn."""

    tensor: int = 4
    data: int = 2
    kv_heads: int = 2
    bugs: tuple[tuple[str, str], ...] = ()

    @property
    def layout(self) -> Layout:
        return Layout(self.tensor, self.data, self.kv_heads)


def planned(case: Runs, gen: torch.Generator) -> list[Bug]:
    """What is planted in each run."""
    if case.bugs:
        return [Bug(kind, parameter) for kind, parameter in case.bugs]
    has_replicas = case.kv_heads < case.tensor
    kinds = [*(kind for kind in KINDS if kind != REPLICAS or has_replicas), NONE]
    order = torch.randperm(len(kinds), generator=gen).tolist()
    return [Bug(kinds[k], _site(kinds[k], gen)) for k in order]


def _site(kind: str, gen: torch.Generator) -> str:
    sites = SITES.get(kind, (NONE,))
    return sites[int(torch.randint(len(sites), (), generator=gen))]


def gradients(case: Runs, bug: Bug, gen: torch.Generator) -> dict[str, Any]:
    """reference: of each rank what one process has; ranks: what the rank has. Weights are tied where that is what the
    bug is about, and where there is none."""
    layout = replace(case.layout, tied=bug.kind in (TIES, NONE), clipped=bug.kind == CLIPPED)
    weights, batches = draw(layout, gen)
    return {
        "reference": parts(one_process(layout, weights, batches), layout),
        "ranks": on_ranks(layout, weights, batches, bug),
    }


def compose_inputs(case: Runs, gen: torch.Generator) -> dict[str, Any]:
    return {"groups": case.layout.groups, "runs": [gradients(case, bug, gen) for bug in planned(case, gen)]}


def drive_compose_bugs(ans, case: Runs, tree: dict, stage) -> dict[str, Any]:
    """By run the parameter and the kind that were blamed; "none" for None."""
    found = {}
    for number, run in enumerate(tree["runs"], 1):
        blamed = ans.blame(run["reference"], run["ranks"], tree["groups"])
        parameter, kind = (NONE, NONE) if blamed is None else blamed
        found[f"run {number}"] = {"kind": str(kind), "parameter": str(parameter)}
    return found


COMPOSE_BUGS = Exercise(
    id="17-compose-bugs",
    title="Blame a parameter and a kind of bug",
    points=5,
    minutes=45,
    difficulty=3,
    answers=(Answer("blame"),),
    public=(
        Runs(
            bugs=(
                ("not summed", "blocks.0.norm2.weight"),
                (NONE, NONE),
                (REPLICAS, "blocks.1.k.weight"),
                ("averaged twice", "all"),
            )
        ),
        Runs(
            2,
            3,
            bugs=(
                ("wrong world size", "all"),
                ("wrong group", "blocks.0.up.weight"),
                ("backward not reduced", "blocks.1.norm2.weight"),
                (NONE, NONE),
            ),
        ),
        Runs(
            4,
            2,
            bugs=(
                ("one seed", "all"),
                ("on every rank", "blocks.0.o.bias"),
                (CLIPPED, "all"),
                ("wrong group", "blocks.1.v.weight"),
            ),
        ),
        Runs(
            3,
            2,
            3,
            bugs=(
                (TIES, "embed.weight"),
                ("backward not reduced", "norm.weight"),
                ("averaged twice", "all"),
                ("not summed", "blocks.1.down.bias"),
            ),
        ),
    ),
    inputs=compose_inputs,
    drive=drive_compose_bugs,
    run=Run(wall_s=30.0),
)
