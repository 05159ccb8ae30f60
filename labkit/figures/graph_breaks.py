"""The graphs of one call side by side, and what cut them apart. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure

if TYPE_CHECKING:
    from labkit.meters.compile import CompileProfile

GAP = 0.5
"""Room for a cut, in operations."""
_LISTED = 8


def graphs_and_breaks(profiles: Mapping[str, CompileProfile]) -> Figure:
    """A row for each name: its graphs as boxes, as wide as they have operations; below, why the graphs ended."""
    reasons = [
        shorten(f"{name}, {one.where or 'no line'}   ({one.reason})", 118)
        for name, profile in profiles.items()
        for one in {(one.where, one.reason): one for one in profile.breaks}.values()
    ]
    listed = reasons[:_LISTED] + [f"and {len(reasons) - _LISTED} more"] * (len(reasons) > _LISTED)
    figure, axes = new_figure(8.5, 0.9 + 0.6 * len(profiles) + 0.22 * len(listed))
    for row, profile in enumerate(profiles.values()):
        left = 0.0
        for number, graph in enumerate(profile.graphs):
            if number:
                middle = left - GAP / 2
                axes.plot([middle, middle], [row - 0.42, row + 0.42], color=OTHER, linewidth=2)
            width = len(graph.operations)
            axes.add_patch(Rectangle((left, row - 0.3), width, 0.6, facecolor=SHADE, edgecolor=YOURS, linewidth=1.4))
            axes.text(left + width / 2, row, str(width), ha="center", va="center", fontsize=9, color=YOURS)
            left += width + GAP
        axes.set_xlim(0, max(axes.get_xlim()[1] if row else 0, left))
    axes.set_ylim(len(profiles) - 0.4, -0.6)
    axes.set_yticks(range(len(profiles)), profiles.keys())
    axes.set_xticks([])
    axes.grid(False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(left=False)
    shown = "graphs (boxes, with their numbers of operations) in the order of the call, cut apart (red)"
    axes.set_xlabel(f"{shown}; why they ended:" if listed else shown, fontsize=9)
    if listed:
        figure.supxlabel("\n".join(listed), x=0.02, ha="left", fontsize=8, color=TRUTH)
    return figure
