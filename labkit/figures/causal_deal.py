"""Lab 19: the triangle of a causal mask in the colours of the ranks that compute it, and each rank's work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, LabFigure
from labkit.figures.sampler import RANK_COLORS
from labkit.figures.sliders import with_sliders

MASKED = "#eceff1"
Order = Sequence[Sequence[int]]
"""For each rank, at most 8 of them, the positions that it has."""


def causal_deal(order: Order, title: str) -> Figure:
    """Left the queries of a text as rows and its keys as columns, each pair in the colour of the query's rank; right
    the number of pairs of each rank, with a line at the mean."""
    return causal_deals({title: order})


def causal_deals(orders: Mapping[str, Order], compares: bool = False) -> Figure:
    """Several ways to deal a text, by title, one above the other, with all bars on one axis. compares: it is said how
    much longer than with even work the slowest rank takes."""
    figure = LabFigure(figsize=(9.0, 3.6 * len(orders)), dpi=DPI, layout="constrained", facecolor="white")
    rows = figure.subplots(len(orders), 2, width_ratios=(1.0, 1.3), squeeze=False)
    most = max(max(_pairs(order)) for order in orders.values())
    descriptions = []
    for (square, bars), (title, order) in zip(rows, orders.items(), strict=True):
        _triangle(square, order, title)
        _work(bars, _pairs(order), most, compares)
        n_tokens = sum(map(len, order))
        descriptions.append(
            f"{title}: the lower triangle of {n_tokens} by {n_tokens} pairs, each row in the colour of its rank, and a "
            f"bar for each rank. Pairs by rank: {', '.join(map(str, _pairs(order)))}."
        )
    figure.alt = " ".join(descriptions)
    return figure


def deal_player(zigzag: Callable[[int, int], Order], n_tokens: int = 48, n_ranks: int = 4) -> object:
    """A text in contiguous blocks, and as a student's zigzag(n_tokens, n_ranks) deals it, under a slider over ranks."""
    zigzag(n_tokens, n_ranks)  # a stub is met here, and not in the middle of a widget

    def draw(n_ranks: int) -> Figure:
        cuts = [rank * n_tokens // n_ranks for rank in range(n_ranks + 1)]
        blocks = [list(range(*ends)) for ends in pairwise(cuts)]
        return causal_deals({"contiguous blocks": blocks, "your zigzag": zigzag(n_tokens, n_ranks)}, compares=True)

    return with_sliders(draw, {"n_ranks": ("ranks", (1, 2, 3, 4, 6, 8), n_ranks)})


def _pairs(order: Order) -> list[int]:
    """How many pairs of a query and a key each rank has."""
    return [sum(position + 1 for position in mine) for mine in order]


def _triangle(axes: Axes, order: Order, title: str) -> None:
    n_tokens = sum(map(len, order))
    owner = np.full((n_tokens, n_tokens), -1)
    for rank, mine in enumerate(order):
        for position in mine:
            owner[position, : position + 1] = rank
    palette = ListedColormap([MASKED, *RANK_COLORS[: len(order)]])
    axes.imshow(owner, cmap=palette, vmin=-1, vmax=len(order) - 1, extent=(0, n_tokens, n_tokens, 0))
    axes.set(xlabel="key's position", ylabel="query's position", title=title)


def _work(axes: Axes, pairs: Sequence[int], most: int, compares: bool) -> None:
    mean = sum(pairs) / len(pairs)
    drawn = axes.barh([f"rank {rank}" for rank in range(len(pairs))], pairs, color=RANK_COLORS[: len(pairs)])
    axes.bar_label(drawn, [f"{n:,}" for n in pairs], padding=4)
    axes.axvline(mean, color="black", linestyle="--", linewidth=1)
    axes.annotate(
        f"even work; the slowest takes {max(pairs) / mean:.2f} x as long"
        if compares and max(pairs) > mean
        else "even work",
        (mean, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.15 * most)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("pairs of a query and a key")
