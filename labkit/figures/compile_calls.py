"""What became of the calls of compiled functions: one by one as a coloured strip, and as versions against sizes.

Nothing is compiled here: the states and counts are those of `track_compile`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure

COLORS = {"compiling": "#f9a825", "compiled": "#2e7d32", "eager": OTHER}
NAMES = {"compiling": "compiles, then runs", "compiled": "runs compiled", "eager": "runs eagerly"}
LETTERS = {"compiling": "c", "compiled": "", "eager": "e"}
"""For those who cannot tell the colours."""
MOST_LETTERS, FEW = 80, 40
"""Calls in a row: up to so many, a letter fits into a box; up to so few, one of 8 points."""


def call_strip(calls: Mapping[str, Sequence[str]]) -> Figure:
    """A row of boxes for each name, one box a call, in the order of the calls."""
    longest = max((len(states) for states in calls.values()), default=1)
    figure, axes = new_figure(8.5, 0.9 + 0.42 * len(calls))
    for row, states in enumerate(calls.values()):
        for number, state in enumerate(states):
            axes.add_patch(Rectangle((number + 0.55, row - 0.36), 0.9, 0.72, color=COLORS[state], linewidth=0))
            if LETTERS[state] and longest <= MOST_LETTERS:
                size = 8 if longest <= FEW else 6
                axes.text(number + 1, row, LETTERS[state], ha="center", va="center", fontsize=size, color="white")
    axes.set_xlim(0.3, longest + 0.7)
    axes.set_ylim(len(calls) - 0.5, -0.5)
    axes.set_yticks(range(len(calls)), calls.keys())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("number of the call")
    axes.grid(False)
    axes.spines[["left"]].set_visible(False)
    axes.tick_params(left=False)
    handles = [Patch(color=COLORS[state], label=_label(state, longest)) for state in COLORS]
    figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False, fontsize=9)
    return figure


def versions_by_size(calls: Mapping[str, Sequence[str]], sizes: Sequence[int]) -> Figure:
    """How many versions are compiled after each call. sizes: of the batch in each call."""
    figure, axes = new_figure(7.0, 3.2)
    styles = zip(calls.items(), (OTHER, TRUTH, YOURS, "#6a1b9a"), ("o-", "s--", "D-.", "^:"), strict=False)
    for (name, states), color, style in styles:
        compiled = [sum(state == "compiling" for state in states[: n + 1]) for n in range(len(states))]
        axes.plot(range(1, len(states) + 1), compiled, style, color=color, label=name, markersize=5, linewidth=1.6)
    axes.set_xticks(range(1, len(sizes) + 1), [f"{size} rows" for size in sizes])
    axes.set_ylim(0, None)
    axes.set_ylabel("versions compiled so far")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    return figure


def _label(state: str, longest: int) -> str:
    """The letter is named where it is drawn."""
    is_drawn = LETTERS[state] and longest <= MOST_LETTERS
    return f"{NAMES[state]} ({LETTERS[state]})" if is_drawn else NAMES[state]
