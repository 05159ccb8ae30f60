"""Lab 02: a sum of half-precision numbers in single precision, a block at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise


@dataclass(frozen=True)
class Blocks(Case):
    """A float16 tensor of `shape`, summed along `dim` with `block_size` slices at a time."""

    shape: tuple[int, ...]
    dim: int
    block_size: int

    @property
    def n_summed(self) -> int:
        return self.shape[self.dim]

    @property
    def n_blocks(self) -> int:
        return -(-self.n_summed // self.block_size)


def half_tensor(case: Blocks, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x: float16 from 0 to 200, so that sums of a thousand are beyond float16's 65504."""
    return {"x": (200 * torch.rand(case.shape, generator=gen)).to(torch.float16)}


def drive_blocked(ans, case: Blocks, tree: dict, stage) -> dict[str, object]:
    """out: the sums. Run twice: the first run warms up, the second is the one that is measured and judged."""
    x = tree["x"].to(stage.device)
    ans.blocked_sum(x, case.dim, case.block_size)
    with stage.meter("ops"), stage.meter("memory"):
        out = ans.blocked_sum(x, case.dim, case.block_size)
    tree["x"] = x.cpu()
    return {"out": out, "dispatches": stage.measured["dispatches"]}


BLOCKED_SUM = Exercise(
    id="02-blocked-sum",
    title="Half-precision numbers, single-precision sum",
    points=3,
    minutes=10,
    difficulty=2,
    answers=(Answer("blocked_sum"),),
    public=(
        Blocks((1024, 256), 0, 64),
        Blocks((256, 1024), 1, 64),
        Blocks((1000, 200), 0, 128),
        Blocks((8, 1500, 24), -2, 100),
        Blocks((5, 1, 300), -1, 4),
        Blocks((5, 7), 0, 64),
    ),
    inputs=half_tensor,
    drive=drive_blocked,
    meters=("ops", "memory"),
)
