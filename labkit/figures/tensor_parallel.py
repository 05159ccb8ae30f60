"""Lab 17: the matrices of an MLP cut over the ranks, and what a block sends and keeps with and without sequence
parallelism. The latter is drawn from what was counted; the former shows shapes only.
"""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, TRUTH, LabFigure
from labkit.figures.sliders import with_sliders
from labkit.material.lab17_sequence import BlockCost

RANKS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
COPY = "#9fb3c8"
TOKENS, HIDDEN, FFN = 2048, 4096, 16384
SIDES = {TOKENS: 0.9, HIDDEN: 1.3, FFN: 2.6}
"""Drawn lengths: not to scale, or the matrices would be slivers."""


HOW_IN_WORDS = {"replicated": "whole", "partial": "term of a sum", "columns": "columns", "rows": "rows"}


def cut_matrices(n_ranks: int = 4) -> Figure:
    """X A in columns, GELU, times B in rows: the parts in the ranks' colours, the shapes of one rank below."""
    figure = LabFigure(figsize=(9.6, 3.5), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.axis("off")
    x, middle, places = 0.0, 1.5, []
    tensors = (
        ("X", TOKENS, HIDDEN, "replicated", "·"),
        ("A", HIDDEN, FFN, "columns", "→"),
        ("GELU(X A)", TOKENS, FFN, "columns", "·"),
        ("B", FFN, HIDDEN, "rows", "→"),
        ("term of Y", TOKENS, HIDDEN, "partial", ""),
    )
    for name, rows, columns, how, then in tensors:
        width, height = SIDES[columns], SIDES[rows]
        _matrix(axes, x, middle - height / 2, width, height, how, n_ranks)
        shape = (rows // n_ranks if how == "rows" else rows, columns // n_ranks if how == "columns" else columns)
        axes.text(x + width / 2, middle + height / 2 + 0.1, name, ha="center", va="bottom", fontsize=10)
        text = f"{HOW_IN_WORDS[how]}\n{shape[0]:,} × {shape[1]:,}"
        axes.text(x + width / 2, middle - height / 2 - 0.1, text, ha="center", va="top", fontsize=8.5, color=TRUTH)
        places.append(f"{name} {shape[0]} x {shape[1]}")
        axes.text(x + width + 0.22, middle, then, ha="center", va="center", fontsize=14, color=TRUTH)
        x += width + 0.44
    axes.set_xlim(-0.1, x - 0.3)
    axes.set_ylim(-0.55, 3.2)
    axes.set_aspect("equal")
    share = 4 * HIDDEN * FFN / n_ranks / 2**20
    axes.set_title(
        f"{n_ranks} rank{'s' * (n_ranks > 1)}, a colour each. Below, the shapes of one rank's parts: "
        f"{share:,.0f} MiB of weights in 16 bits",
        loc="left",
        fontsize=10,
    )
    figure.alt = f"On one of {n_ranks} ranks: " + ", ".join(places)
    return figure


def cut_matrices_slider() -> object:
    """`cut_matrices` under a slider for the number of ranks; without ipywidgets, of 4."""
    return with_sliders(cut_matrices, {"n_ranks": ("ranks t", (1, 2, 4, 8), 4)})


def _matrix(axes: Axes, x: float, y: float, width: float, height: float, how: str, n: int) -> None:
    edge = {"edgecolor": "white", "linewidth": 1.0}
    if how == "replicated":
        axes.add_patch(Rectangle((x, y), width, height, facecolor=COPY, **edge))
    for rank in range(n):
        colour = RANKS[rank % len(RANKS)]
        if how == "columns":
            axes.add_patch(Rectangle((x + rank * width / n, y), width / n, height, facecolor=colour, **edge))
        elif how == "rows":
            place = (x, y + (n - 1 - rank) * height / n)
            axes.add_patch(Rectangle(place, width, height / n, facecolor=colour, **edge))
        elif how == "partial":
            off = 0.3 / n * (n - 1 - rank)
            axes.add_patch(Rectangle((x + off, y + off), width - 0.3, height - 0.3, facecolor=colour, **edge))


def sequence_costs(costs: Mapping[str, BlockCost]) -> Figure:
    """Left: bytes that a rank sends, forward and backward. Right: bytes that it holds after the forward pass."""
    figure = LabFigure(figsize=(8.6, 1.5 + 0.45 * len(costs)), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    names = list(costs)
    for row, cost in enumerate(costs.values()):
        forward, backward, held = (n / 1e6 for n in (cost.sent_forward, cost.sent_backward, cost.held))
        left.barh(row, forward, color="#0072B2", height=0.55, label="forward" if not row else None)
        left.barh(row, backward, left=forward, color="#E69F00", height=0.55, label="backward" if not row else None)
        left.text(forward + backward, row, f" {forward + backward:.2f}", va="center", fontsize=9)
        right.barh(row, held, color="#009E73", height=0.55)
        right.text(held, row, f" {held:.2f}", va="center", fontsize=9)
    most = (max(cost.sent for cost in costs.values()), max(cost.held for cost in costs.values()))
    for axes, n_bytes, title in zip(
        (left, right), most, ("sent by a rank, MB", "held after the forward pass, MB"), strict=True
    ):
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlim(0, 1.2 * n_bytes / 1e6)
        axes.set_ylim(len(costs) - 0.5, -0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, axis="x", color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
    left.set_yticks(range(len(costs)), names)
    right.set_yticks(range(len(costs)), [""] * len(costs))
    left.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
    figure.alt = "; ".join(
        f"{name}: sent {cost.sent / 1e6:.2f} MB, held {cost.held / 1e6:.2f} MB" for name, cost in costs.items()
    )
    return figure
