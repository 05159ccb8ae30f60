"""Lab 99, first half; copied into the worker's tree by the tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Run

ORDER = (
    "double",
    "slow",
    "share",
    "measured",
    "all-reduce",
)


@dataclass(frozen=True)
class Size(Case):
    n: int = 4


def _inputs(case, gen):
    return {"x": torch.randn(case.n, generator=gen)}


DOUBLE = Exercise(
    id="99-double",
    title="Twice the input",
    points=3,
    minutes=1,
    difficulty=1,
    answers=(Answer("double"),),
    public=(Size(), Size(7)),
    inputs=_inputs,
    drive=lambda ans, case, tree, stage: {"out": ans.double(tree["x"])},
    run=Run(wall_s=1.5),
)
SLOW = Exercise(
    id="99-slow",
    title="A limit on CPU time",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("slow"),),
    public=(Size(),),
    inputs=_inputs,
    drive=lambda ans, case, tree, stage: {"out": ans.slow(tree["x"])},
    run=Run(wall_s=20, cpu_s=0.5),
)
SHARE = Exercise(
    id="99-share",
    title="A partial score, from a value and a text",
    points=2,
    minutes=1,
    difficulty=1,
    answers=(Answer("share", kind="value"), Answer("words", kind="text", cell="99-words")),
    public=(Case(),),
    inputs=lambda case, gen: {},
    drive=lambda ans, case, tree, stage: {"share": ans.share, "words": ans.words},
)
MEASURED = Exercise(
    id="99-measured",
    title="A memory budget",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("measured"),),
    public=(Size(1000),),
    inputs=_inputs,
    drive=lambda ans, case, tree, stage: _measured(ans, tree, stage),
    meters=("memory",),
)
ALL_REDUCE = Exercise(
    id="99-all-reduce",
    title="Several ranks, and a budget on what they send",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("all_reduce"),),
    public=(Size(6),),
    inputs=lambda case, gen: {"x": torch.randn(3, case.n, generator=gen)},
    drive=lambda ans, case, tree, stage: {"out": ans.all_reduce(stage.comm, tree["x"][stage.rank])},
    run=Run(ranks=3, wall_s=1.5),
)


def _measured(ans, tree, stage):
    with stage.meter("memory"):
        out = ans.measured(tree["x"])
    return {"out": out}
