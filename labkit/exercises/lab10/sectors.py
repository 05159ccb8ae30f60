"""Lab 10: what is asked, given and run for the requests and sectors of a load, counted before any kernel runs."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.spec import Answer, Case, Exercise


@dataclass(frozen=True)
class Load(Case):
    """`if (i < n && i % every == 0) value = x[i * stride];` of one thread for each i; see the notebook."""

    n: int
    block: int = 256
    size: int = 4
    stride: int = 1
    offset: int = 0
    every: int = 1


def drive_sectors(ans, case: Load, tree: dict, stage) -> dict[str, object]:
    return {"cost": ans.load_cost(case.n, case.block, case.size, case.stride, case.offset, case.every)}


SECTORS = Exercise(
    id="10-sectors",
    title="Requests and sectors of an access, predicted",
    points=2,
    minutes=20,
    difficulty=2,
    answers=(Answer("load_cost"),),
    public=(
        Load(1024),
        Load(1000, offset=8),
        Load(300, size=16),
        Load(500, stride=3),
        Load(777, block=128, size=8, stride=2, offset=8),
        Load(333, block=48),
        Load(600, block=64, every=50),
        Load(256, stride=0),
    ),
    inputs=lambda case, gen: {},
    drive=drive_sectors,
)
