"""The figures of lab 04: what each token counts in an accumulated gradient, and what accumulation does to memory."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, LabFigure

TOKENS_A_BOX = 8


def token_weights(lengths: Sequence[int]) -> Figure:
    """A row for each text, a box for each 8 tokens, coloured by how much a token counts in the accumulated gradient.

    lengths: tokens of each text, one text a micro-batch. Upper: a mean of means. Lower: a mean over tokens.
    """
    figure = LabFigure(figsize=(8.0, 3.8), dpi=DPI, layout="constrained", facecolor="white")
    weights = {
        f"a mean of means: loss / {len(lengths)}": [1 / (len(lengths) * n) for n in lengths],
        "a mean over tokens": [1 / sum(lengths) for _ in lengths],
    }
    most = max(weights[next(iter(weights))])
    for place, (title, each) in enumerate(weights.items()):
        axes = figure.add_subplot(2, 1, place + 1)
        for row, (n, weight) in enumerate(zip(lengths, each, strict=True)):
            for start in range(0, n, TOKENS_A_BOX):
                color = (0.93 - 0.85 * weight / most, 0.95 - 0.55 * weight / most, 0.97 - 0.22 * weight / most)
                axes.add_patch(Rectangle((start, row + 0.1), TOKENS_A_BOX - 0.6, 0.8, facecolor=color))
            axes.text(n + 3, row + 0.5, f"{weight:.2%} each, {weight * n:.1%} together", va="center", fontsize=7.5)
        axes.set_xlim(0, 1.3 * max(lengths))
        axes.set_ylim(len(lengths), 0)
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.set_title(title, loc="left", fontsize=10)
        if place:
            axes.set_xlabel("tokens")
    return figure
