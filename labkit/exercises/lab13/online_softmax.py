"""Lab 13: the statistics of a softmax in one pass over blocks. What is asked, given and run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise

INF = float("inf")
N_KINDS = 8
"""Kinds of rows that `rows` makes, one after the other."""


TOP, HALFWAY = 2.25, 0.125 + 2**-10
"""Two numbers of float16 whose difference lies halfway between two others: rounded, its exponential is off by 1e-3."""


@dataclass(frozen=True)
class Blocks(Case):
    """A matrix that comes in blocks of columns. widths: of the blocks, in order."""

    widths: tuple[int, ...] = (16, 16, 16)
    n_rows: int = N_KINDS
    dtype: str = "float32"

    @property
    def n_cols(self) -> int:
        return sum(self.widths)


def rows(case: Blocks, gen: torch.Generator) -> Tensor:
    """(n_rows, n_cols). Row 0 is ordinary, 1 rises, 2 falls, 3 is far below zero, 4 is large; of the next three, the
    first block, a block in between, and everything is minus infinity. In float16, row 0 holds HALFWAY and one TOP."""
    x = 2 * torch.randn(case.n_rows, case.n_cols, generator=gen)
    ramp = torch.linspace(-20, 20, case.n_cols)
    x[1::N_KINDS] += ramp
    x[2::N_KINDS] -= ramp
    x[3::N_KINDS] -= 60
    x[4::N_KINDS] += 100
    parts = x.split(case.widths, dim=1)
    parts[0][5::N_KINDS] = -INF
    parts[len(parts) // 2][6::N_KINDS] = -INF
    x[7::N_KINDS] = -INF
    if case.dtype == "float16":
        widest = max(range(len(parts)), key=lambda at: case.widths[at])
        x[0::N_KINDS], parts[widest][0::N_KINDS, 0] = HALFWAY, TOP
    return x.to(getattr(torch, case.dtype))


def halves(gen: torch.Generator) -> dict[str, Tensor]:
    """Statistics of two parts of 12 rows each; in some rows a part, or both, has seen nothing but minus infinity."""
    tree = {}
    for side, nothing in (("left", (4, 5)), ("right", (5, 6))):
        tree[f"{side}_top"] = 5 * torch.randn(12, generator=gen)
        tree[f"{side}_total"] = 1 + 9 * torch.rand(12, generator=gen)
        for row in nothing:
            tree[f"{side}_top"][row], tree[f"{side}_total"][row] = -INF, 0.0
    tree["left_top"][1] = tree["right_top"][1]
    return tree


def one_by_one(case: Blocks, x: Tensor) -> Iterator[Tensor]:
    """The blocks, each copied when it is asked for: whoever keeps them all holds a second matrix."""
    for block in x.split(case.widths, dim=1):
        given = block.clone()
        yield given
        if not torch.equal(given, block):
            raise ValueError("a block was changed in place, and whoever made it may still need it: work on a copy")
        del given


def drive_stats(ans, case: Blocks, tree: dict, stage) -> dict:
    """One pass over the blocks, its memory watched, and a merge of statistics that were made elsewhere."""
    with stage.meter("memory"):
        top, total = ans.softmax_stats(one_by_one(case, tree["x"]))
    left, right = ((tree[f"{side}_top"], tree[f"{side}_total"]) for side in ("left", "right"))
    merged_top, merged_total = ans.merge_stats(left, right)
    return {"top": top, "total": total, "merged_top": merged_top, "merged_total": merged_total}


ONLINE_SOFTMAX = Exercise(
    id="13-online-softmax",
    title="Softmax in one pass over blocks",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("softmax_stats"), Answer("merge_stats")),
    public=(
        Blocks((16, 16, 16)),
        Blocks((1, 30, 7, 2)),
        Blocks((8,) * 40),
        Blocks((20, 5, 40), dtype="float16"),
        Blocks((9,)),
    ),
    inputs=lambda case, gen: {"x": rows(case, gen), **halves(gen)},
    drive=drive_stats,
    meters=("memory",),
)
