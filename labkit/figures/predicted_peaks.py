"""Lab 20: the peaks that a student predicted, on the bars of what was billed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from labkit.figures.canvas import TRUTH, YOURS, new_figure
from labkit.spec import GiB

COLOURS = {
    "parameters": "#0072B2",
    "gradients": "#E69F00",
    "optimizer": "#D55E00",
    "activations": "#009E73",
    "temporaries": "#CC79A7",
}
"""Of the categories that a bill's peak has; "inputs" are too few to be seen."""

Row = tuple[str, Mapping[str, int], float | None]
"""A label, the billed peak by category, and what was predicted: ("as written", {"parameters": 2**30}, 1.1e9)."""


def predicted_peaks(rows: Sequence[Row], card_bytes: float) -> Figure:
    """A bar of each run's peak by category, with a mark where the prediction is. card_bytes: what the card holds."""
    figure, axes = new_figure(8.4, 1.5 + 0.5 * len(rows))
    descriptions = []
    for row, (label, peak, predicted) in enumerate(rows):
        left = 0.0
        for category, colour in COLOURS.items():
            size = peak.get(category, 0) / GiB
            axes.barh(row, size, left=left, height=0.6, color=colour, label=None if row else category)
            left += size
        axes.annotate(f"{left:.1f}", (left, row), (8, 0), textcoords="offset points", va="center", fontsize=9)
        text = f"{label.replace(chr(10), ' ')}: {left:.1f} GiB"
        if predicted is not None:
            axes.plot(
                [predicted / GiB] * 2,
                [row - 0.42, row + 0.42],
                color=YOURS,
                linewidth=3,
                label=None if row else "you predicted",
            )
            text += f", predicted {predicted / GiB:.1f}"
        descriptions.append(text)
    axes.axvline(card_bytes / GiB, color=TRUTH, linestyle="--", linewidth=1)
    axes.annotate(
        "the card", (card_bytes / GiB, -0.62), (3, 0), textcoords="offset points", color=TRUTH, fontsize=9, va="center"
    )
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.85)
    axes.set_xlim(left=0)
    axes.grid(False, axis="y")
    axes.set_xlabel("peak on one card, GiB")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    figure.alt = f"Peaks by category on a card of {card_bytes / GiB:.0f} GiB. {'; '.join(descriptions)}."
    return figure
