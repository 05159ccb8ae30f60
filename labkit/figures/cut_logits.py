"""Lab 17: logits cut by columns, and the three numbers that each rank knows of a token.

The numbers are drawn for the picture; nothing of the student's is in it.
"""

from __future__ import annotations

import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from labkit.figures.canvas import DPI, OTHER, TRUTH, LabFigure

N_RANKS, COLUMNS = 3, 4
TARGETS = (6, 1, 11, 4)
RANK_COLOURS = ("#cfe8f7", "#fbe3b0", "#c2e7da")


def cut_logits() -> LabFigure:
    """Left: 4 tokens' logits on 3 ranks, the targets framed. Right: what each rank knows of the first token."""
    logits = example_logits()
    figure = LabFigure(figsize=(8.6, 2.9), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    for token, row in enumerate(logits.tolist()):
        for column, value in enumerate(row):
            colour = RANK_COLOURS[column // COLUMNS]
            left.add_patch(Rectangle((column, -token - 1), 1, 1, facecolor=colour, edgecolor="white"))
            left.text(column + 0.5, -token - 0.5, f"{value:.1f}", ha="center", va="center", fontsize=9)
        left.add_patch(
            Rectangle((TARGETS[token], -token - 1), 1, 1, fill=False, edgecolor=OTHER, linewidth=2, zorder=3)
        )
    for rank in range(N_RANKS):
        left.text((rank + 0.5) * COLUMNS, 0.25, f"rank {rank}", ha="center", fontsize=10)
    left.set_xlim(0, N_RANKS * COLUMNS)
    left.set_ylim(-len(TARGETS) - 0.1, 0.9)
    left.set_yticks(
        [-token - 0.5 for token in range(len(TARGETS))], [f"token {token}" for token in range(len(TARGETS))]
    )
    left.set_xticks([])
    rows = [[f"rank {rank}", *(f"{one:.2f}" for one in known(logits, rank))] for rank in range(N_RANKS)]
    rows.append(["together", *(f"{one:.2f}" for one in together(logits))])
    table = right.table(
        cellText=rows,
        colLabels=["token 0", "maximum", "sum of exp(x - m)", "target's logit"],
        cellColours=[*([colour] * 4 for colour in RANK_COLOURS), ["white"] * 4],
        cellLoc="center",
        bbox=(0, 0.1, 1, 0.85),
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.auto_set_column_width(list(range(4)))
    for axes in (left, right):
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    right.axis("off")
    right.text(0.0, 0.0, "m is the maximum of all ranks", transform=right.transAxes, fontsize=9, color=TRUTH)
    highest, total, picked = together(logits)
    figure.alt = (
        f"Logits of 4 tokens and 12 columns on 3 ranks. Of token 0, the maximum is {highest:.2f}, the sum of "
        f"exponentials {total:.2f} and the target's logit {picked:.2f}, each put together from one number of each rank."
    )
    return figure


def example_logits() -> Tensor:
    return torch.randn(len(TARGETS), N_RANKS * COLUMNS, generator=torch.Generator().manual_seed(5)) * 2


def known(logits: Tensor, rank: int) -> tuple[float, float, float]:
    """What a rank contributes for token 0: its maximum, its sum below the maximum of all, the target's logit or 0."""
    own = logits[0, rank * COLUMNS : (rank + 1) * COLUMNS]
    total = (own - logits[0].max()).exp().sum()
    is_here = TARGETS[0] // COLUMNS == rank
    return own.max().item(), total.item(), logits[0, TARGETS[0]].item() if is_here else 0.0


def together(logits: Tensor) -> tuple[float, float, float]:
    """The largest maximum, and the sums of the others."""
    parts = [known(logits, rank) for rank in range(N_RANKS)]
    return max(part[0] for part in parts), sum(part[1] for part in parts), sum(part[2] for part in parts)
