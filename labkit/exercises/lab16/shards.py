"""Lab 16: steps with gradients that are drawn from seeds, for its ZeRO exercises. A rank knows its own seed alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Case

LARGE = 2**18
"""From so many elements on, only some of the parameters come back."""
SOME = 4099
"""Of large cases every so manieth element."""


@dataclass(frozen=True)
class ShardedSteps(Case):
    """n_steps steps of n_micro micro-batches. idle: the number of a parameter that has no gradient, -1 for none."""

    n_ranks: int = 3
    shapes: tuple[tuple[int, ...], ...] = ((4, 5), (7,))
    optimizer: str = "momentum"
    n_steps: int = 3
    n_micro: int = 1
    idle: int = -1

    @property
    def n_elements(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def n_active(self) -> int:
        """Elements of the parameters that have a gradient."""
        return sum(math.prod(shape) for number, shape in enumerate(self.shapes) if number != self.idle)

    @property
    def is_large(self) -> bool:
        return self.n_elements >= LARGE

    @property
    def cut_elements(self) -> int:
        """A rank's part where each parameter is cut for itself, each part rounded up."""
        return sum(-(-math.prod(shape) // self.n_ranks) for shape in self.shapes)


def seeds(case: ShardedSteps, gen: torch.Generator) -> dict[str, Any]:
    """One for what all share, and one for each rank's gradients."""
    drawn = torch.randint(2**40, (1 + case.n_ranks,), generator=gen).tolist()
    return {"seed": drawn[0], "ranks": [{"seed": seed} for seed in drawn[1:]]}


def draw_params(case: ShardedSteps, seed: int) -> list[Tensor]:
    """What all ranks begin with."""
    gen = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=gen) for shape in case.shapes]


def draw_grads(case: ShardedSteps, seed: int, rank_seed: int, step: int, micro: int) -> list[Tensor]:
    """A rank's gradients in a micro-batch; each element has the same sign on all ranks, so that no mean is near 0."""
    signs = torch.Generator().manual_seed(seed + 1)
    sizes = torch.Generator().manual_seed(rank_seed + 1000 * step + micro)
    return [
        (torch.randint(0, 2, shape, generator=signs) * 2 - 1) * (0.2 + torch.rand(shape, generator=sizes))
        for shape in case.shapes
    ]


def seen(case: ShardedSteps, params: Sequence[Tensor]) -> list[Tensor]:
    """What comes back of parameters, as copies: all of them, or some elements where they are large."""
    if not case.is_large:
        return [param.detach().clone() for param in params]
    return [param.detach().flatten()[torch.arange(0, param.numel(), SOME)] for param in params]
