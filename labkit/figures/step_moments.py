"""Lab 20: what is alive at the three moments of a step that may be its largest. No number of a run is drawn here."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, LabFigure

MOMENTS = ("the loss", "the last block's\nbackward pass", "the update of the\nlargest weight")
ROWS = (
    ("weights", "#0072B2", ("always", "always", "always")),
    ("AdamW's states", "#D55E00", ("if on the card", "if on the card", "if on the card")),
    ("gradients", "#E69F00", ("if micro-batches are summed", "if micro-batches are summed", "always")),
    ("kept by blocks", "#009E73", ("by all blocks", "by the blocks below", "")),
    ("that block, at work", "#56B4E9", ("", "22 of tokens × width", "")),
    ("logits in float32", "#CC79A7", ("3 of tokens × vocab", "", "")),
    ("weights, at work", "#8a8a8a", ("", "two new gradients", "always")),
)
"""What there is, its colour, and when it is alive at each moment; in place of "always" how large it is."""


def step_moments() -> Figure:
    """A grid: what is alive in rows, moments in columns, and in a cell the condition."""
    figure = LabFigure(figsize=(8.2, 3.5), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.subplots()
    for row, (_, colour, cells) in enumerate(ROWS):
        for column, when in enumerate(cells):
            if when:
                solid = when == "always" or when[0].isdigit()
                axes.add_patch(
                    Rectangle(
                        (column + 0.04, row + 0.1),
                        0.92,
                        0.8,
                        facecolor=colour,
                        alpha=0.85 if solid else 0.3,
                        edgecolor=colour,
                        linestyle="-" if solid else "--",
                    )
                )
                text = "" if when == "always" else when
                axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=9)
    axes.set(xlim=(0, len(MOMENTS)), ylim=(len(ROWS), 0))
    axes.set_xticks([column + 0.5 for column in range(len(MOMENTS))], MOMENTS)
    axes.set_yticks([row + 0.5 for row in range(len(ROWS))], [name for name, _, _ in ROWS])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.alt = "What is alive at three moments of a step. " + " ".join(
        f"At {moment.replace(chr(10), ' ')}: "
        + ", ".join(
            name if cells[column] == "always" else f"{name} ({cells[column]})"
            for name, _, cells in ROWS
            if cells[column]
        )
        + "."
        for column, moment in enumerate(MOMENTS)
    )
    return figure
