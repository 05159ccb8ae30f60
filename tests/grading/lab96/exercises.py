"""Lab 96, first half: programs on a store; copied into the worker's tree by the tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Run
from labkit.store import Kill

ORDER = (
    "program",
    "sum",
)
SIZE = 1000


@dataclass(frozen=True)
class Files(Case):
    """n files of SIZE bytes, and jobs that are killed at these calls."""

    n: int = 3
    killed_at: tuple[int, ...] = ()


def _files(case, gen):
    return {f"data/{index}": torch.randint(256, (SIZE,), generator=gen).to(torch.uint8) for index in range(case.n)}


PROGRAM = Exercise(
    id="96-program",
    title="Any program",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("program"),),
    public=(Files(), Files(2, (2,))),
    inputs=lambda case, gen: {
        "files": _files(case, gen),
        "kills": [Kill(at).to_tree() for at in case.killed_at],
        "x": torch.ones(3),
    },
    drive=lambda ans, case, tree, stage: {
        "out": ans.program(stage.store, tree["x"]),
        "job": stage.job,
        "keys": sorted(tree),
    },
    run=Run(store=True, wall_s=8.0),
)


@dataclass(frozen=True)
class Sum(Case):
    """The files to add up; where the first job is killed, no case says."""

    n: int = 4


SUM = Exercise(
    id="96-sum",
    title="A sum over files that goes on where it was",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("total"),),
    public=(Sum(), Sum(5)),
    inputs=lambda case, gen: {
        "files": _files(case, gen),
        "kills": [Kill(int(torch.randint(1, case.n + 1, (), generator=gen)), "write").to_tree()],
    },
    drive=lambda ans, case, tree, stage: {"out": ans.total(stage.store, case.n)},
    run=Run(store=True, wall_s=5.0),
)
