"""Lab 14: ranks that each hold a tensor, and an all-reduce over them; what its four exercises have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab14.send_guard import SendGuard
from labkit.ranks import UNIT, Cluster
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Group(Case):
    """n_ranks ranks, and on each a tensor of this shape and dtype."""

    n_ranks: int = 4
    shape: tuple[int, ...] = (24,)
    dtype: str = "float32"

    @property
    def n_elements(self) -> int:
        """Elements on one rank."""
        return math.prod(self.shape)

    @property
    def n_bytes(self) -> int:
        """S: the bytes of one rank's tensor."""
        return self.n_elements * getattr(torch, self.dtype).itemsize


def tensors(n: int, shape: tuple[int, ...], dtype: torch.dtype, gen: torch.Generator) -> list[torch.Tensor]:
    """One tensor for each of n ranks. No sum over ranks cancels: each element has the same sign on all ranks."""
    if not dtype.is_floating_point:
        return [torch.randint(-1000, 1000, shape, dtype=dtype, generator=gen) for _ in range(n)]
    sign = torch.randint(0, 2, shape, generator=gen) * 2 - 1
    return [(sign * (1 + 2 * torch.rand(shape, generator=gen))).to(dtype) for _ in range(n)]


def group_inputs(case: Group, gen: torch.Generator) -> dict[str, Any]:
    """For each rank its x, of case.shape."""
    return {"ranks": [{"x": x} for x in tensors(case.n_ranks, case.shape, getattr(torch, case.dtype), gen)]}


def ranks_of(case: Any) -> int:
    """How many ranks a case has."""
    return case.n_ranks


def on_unit_wires(case: Any) -> Cluster:
    """Every message takes one second, so that seconds are rounds."""
    return UNIT


SEVERAL_RANKS = Run(ranks=ranks_of, cluster=on_unit_wires, wall_s=20.0)
"""Eight processes that answer one another on a busy machine take their time."""


def calling(name: str) -> Callable[..., dict[str, Any]]:
    """A driver that calls the answer `name` on each rank: (comm, x) -> the sum of all ranks' x."""

    def drive(ans, case: Group, tree: dict, stage) -> dict[str, Any]:
        comm = SendGuard(stage.comm)
        out = getattr(ans, name)(comm, tree["mine"]["x"])
        comm.check()
        return {"out": out}

    return drive


PUBLIC = (
    Group(),
    Group(2, (10,), "int32"),
    Group(3, (20,)),
    Group(5, (4, 7), "int64"),
    Group(8, (5, 23), "bfloat16"),
    Group(5, (3,)),
    Group(4, (0,)),
    Group(1, (6,)),
)
"""Both kinds of numbers of ranks, a rest in every split (on 3 ranks one of 2: a ring that has all of it in one chunk
sends more than it has to), fewer elements than ranks, none at all, and one rank alone."""


def all_reduce_exercise(
    slug: str, title: str, points: float, minutes: int, difficulty: int, optional: bool = False
) -> Exercise:
    """An all-reduce whose answer is called `{slug}_all_reduce`."""
    name = f"{slug}_all_reduce"
    return Exercise(
        id=f"14-{slug}",
        title=title,
        points=points,
        optional=optional,
        minutes=minutes,
        difficulty=difficulty,
        answers=(Answer(name),),
        public=PUBLIC,
        inputs=group_inputs,
        drive=calling(name),
        run=SEVERAL_RANKS,
    )
