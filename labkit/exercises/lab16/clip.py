"""Lab 16: what is asked, given and run for a gradient that is clipped by a norm of which every rank has a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Parts(Case):
    """By rank the sizes of its shards, and the sizes of what all hold. A shard of size 0 has no gradient.

    every: the value of all elements; None draws them.
    """

    shards: tuple[tuple[int, ...], ...] = ((5, 4), (5, 4), (5, 3))
    replicated: tuple[int, ...] = (6,)
    max_norm: float = 1.0
    dtype: str = "float32"
    every: float | None = None

    @property
    def n_ranks(self) -> int:
        return len(self.shards)


def parts_inputs(case: Parts, gen: torch.Generator) -> dict[str, Any]:
    """replicated, for all; the gradients of each rank's shards."""
    dtype = getattr(torch, case.dtype)

    def draw(sizes: tuple[int, ...]) -> list[Tensor]:
        drawn = [(1 + torch.rand(size, generator=gen)).to(dtype) for size in sizes]
        return drawn if case.every is None else [torch.full_like(one, case.every) for one in drawn]

    return {"replicated": draw(case.replicated), "ranks": [{"shards": draw(sizes)} for sizes in case.shards]}


def drive_clip(ans, case: Parts, tree: dict, stage) -> dict[str, Any]:
    """The norm, all gradients afterwards, and whether each is still in the memory where it was."""

    def with_grad(grad: Tensor) -> Tensor:
        param = torch.zeros_like(grad, device=stage.device).requires_grad_()
        if len(grad):
            param.grad = grad.clone().to(stage.device)
        return param

    shards, replicated = (list(map(with_grad, grads)) for grads in (tree["mine"]["shards"], tree["replicated"]))
    given = [p.grad for p in [*shards, *replicated] if len(p)]
    norm = ans.clip_sharded(stage.comm, shards, replicated, case.max_norm)
    left = [p.grad for p in [*shards, *replicated] if len(p)]
    return {
        "norm": float(norm),
        "shards": [p.grad for p in shards if len(p)],
        "replicated": [p.grad for p in replicated],
        "in_place": all(b is not None and a.data_ptr() == b.data_ptr() for a, b in zip(given, left, strict=True)),
    }


CLIP = Exercise(
    id="16-clip",
    title="Clip what nobody holds as a whole",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("clip_sharded"),),
    public=(
        Parts(),
        Parts(((7, 2, 4, 3, 5), (7, 2, 4, 3, 4)), (4, 3), max_norm=2.5),
        Parts(((4, 3), (4, 0), (2, 0), (0, 0)), (5,)),
        Parts(((3, 2), (3, 2), (3, 1)), max_norm=1e3),
        Parts(((300, 200), (300, 200), (299, 150)), (90,), dtype="bfloat16"),
        # The square of each element lies half-way between two numbers of bfloat16.
        Parts(((60, 40), (60, 40)), (30,), dtype="bfloat16", every=1.0625),
        Parts(((6, 4), (5, 4), (5, 4)), ()),
        Parts(((8, 3),), (2,)),
    ),
    inputs=parts_inputs,
    drive=drive_clip,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=20.0),
)
