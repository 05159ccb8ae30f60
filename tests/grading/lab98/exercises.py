"""Lab 98, first half: any program on any number of ranks; copied into the worker's tree by the tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.ranks import UNIT, Cluster
from labkit.spec import Answer, Case, Exercise, Run

ORDER = (
    "program",
    "sum",
    "room",
    "layers",
)


@dataclass(frozen=True)
class Ranks(Case):
    """n ranks, with per_node of them on a node; all on one node of textbook wires where that is 0."""

    n: int = 3
    per_node: int = 0
    size: int = 5


def _inputs(case, gen):
    parts = [{"x": torch.randn(case.size, generator=gen)} for _ in range(case.n)]
    return {"ranks": parts, "scale": 2.0}


def _drive(ans, case, tree, stage):
    with stage.meter("ops"), stage.meter("comm"):
        out = ans.program(stage.comm, tree["mine"]["x"])
    return {"out": out, "keys": sorted(tree), "rank": stage.rank, "world_size": stage.world_size}


PROGRAM = Exercise(
    id="98-program",
    title="Any program",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("program"),),
    public=(Ranks(), Ranks(4)),
    inputs=_inputs,
    drive=_drive,
    run=Run(
        ranks=lambda case: case.n,
        cluster=lambda case: Cluster(ranks_per_node=case.per_node) if case.per_node else UNIT,
        wall_s=8.0,
    ),
    meters=("ops", "comm"),
)
SUM = Exercise(
    id="98-sum",
    title="A sum over the ranks, with little traffic",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("total"),),
    public=(Ranks(), Ranks(2)),
    inputs=_inputs,
    drive=lambda ans, case, tree, stage: {"out": ans.total(stage.comm, tree["mine"]["x"])},
    run=Run(ranks=lambda case: case.n, wall_s=3.0),
)


def _drive_room(ans, case, tree, stage):
    x = tree["mine"]["x"]
    with stage.meter("memory"):
        out = ans.largest(stage.comm, x)
    return {"out": out}


ROOM = Exercise(
    id="98-room",
    title="The largest number on any rank, in little memory",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("largest"),),
    public=(Ranks(2, size=4096), Ranks(1, size=4096)),
    inputs=_inputs,
    drive=_drive_room,
    run=Run(ranks=lambda case: case.n, wall_s=60.0, cpu_s=2.0),
    meters=("memory",),
)


N_LAYERS = 5


def _drive_layers(ans, case, tree, stage):
    sums = []
    with stage.meter("memory"):
        shards = [torch.full((case.size,), 1.0 + stage.rank + layer) for layer in range(N_LAYERS)]
        stage.mark("before")
        for shard in shards:
            sums.append(ans.use(stage.comm, shard))
            stage.mark("between layers")
    return {"sums": sums}


LAYERS = Exercise(
    id="98-layers",
    title="Layers whose weights are whole only while they are used",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("use"),),
    public=(Ranks(2, size=4096), Ranks(3, size=4096)),
    inputs=lambda case, gen: {},
    drive=_drive_layers,
    run=Run(ranks=lambda case: case.n, wall_s=60.0),
    meters=("memory",),
)
