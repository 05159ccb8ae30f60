"""An empty figure in the course's style, which a notebook shows without pyplot.

pyplot keeps every figure alive and shows it a second time at the end of the cell, so the figures do not use it.
"""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure

DPI = 100
YOURS, OTHER, TRUTH, SHADE = "#1565c0", "#c62828", "#5f6b7a", "#eceff1"
"""Colours by role: the student's result, what it is compared with, the exact value, a region."""


class LabFigure(Figure):
    """A Figure that renders itself: as a PNG with twice the pixels, for sharp screens.

    alt: what it shows, in a sentence or two, for those who cannot see it.
    """

    alt = ""

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=2 * DPI)
        width_in, height_in = self.get_size_inches()
        size: dict[str, int | str] = {"width": int(width_in * DPI), "height": int(height_in * DPI)}
        return buffer.getvalue(), {**size, **({"alt": self.alt} if self.alt else {})}


def new_figure(width_in: float = 7.0, height_in: float = 3.6) -> tuple[LabFigure, Axes]:
    """A figure with one pair of axes: no box, a light grid."""
    figure = LabFigure(figsize=(width_in, height_in), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes
