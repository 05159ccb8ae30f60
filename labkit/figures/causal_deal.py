"""Lab 19: the triangle of a causal mask in the colours of the ranks that compute it, and each rank's work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, LabFigure
from labkit.figures.sampler import RANK_COLORS

MASKED = "#eceff1"


def causal_deal(order: Sequence[Sequence[int]], title: str) -> Figure:
    """Left the queries of a text as rows and its keys as columns, each pair in the colour of the query's rank; right
    the number of pairs of each rank, with a line at the mean.

    order: for each rank, at most 8 of them, the positions that it has.
    """
    n_tokens = sum(map(len, order))
    owner = np.full((n_tokens, n_tokens), -1)
    for rank, mine in enumerate(order):
        for position in mine:
            owner[position, : position + 1] = rank
    pairs = [sum(position + 1 for position in mine) for mine in order]
    figure = LabFigure(figsize=(9.0, 3.6), dpi=DPI, layout="constrained", facecolor="white")
    figure.alt = (
        f"{title}: the lower triangle of {n_tokens} by {n_tokens} pairs, each row in the colour of its rank, and a bar "
        f"for each rank. Pairs by rank: {', '.join(map(str, pairs))}."
    )
    square, bars = figure.subplots(1, 2, width_ratios=(1.0, 1.3))
    palette = ListedColormap([MASKED, *RANK_COLORS[: len(order)]])
    square.imshow(owner, cmap=palette, vmin=-1, vmax=len(order) - 1, extent=(0, n_tokens, n_tokens, 0))
    square.set(xlabel="key's position", ylabel="query's position", title=title)
    names = [f"rank {rank}" for rank in range(len(order))]
    drawn = bars.barh(names, pairs, color=RANK_COLORS[: len(order)])
    bars.bar_label(drawn, [f"{n:,}" for n in pairs], padding=4)
    bars.axvline(sum(pairs) / len(pairs), color="black", linestyle="--", linewidth=1)
    bars.annotate(
        "even work",
        (sum(pairs) / len(pairs), 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
    )
    bars.invert_yaxis()
    bars.margins(x=0.15)
    bars.spines[["top", "right"]].set_visible(False)
    bars.set_xlabel("pairs of a query and a key")
    return figure
