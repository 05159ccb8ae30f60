"""An empty figure in the course's style, which a notebook shows without pyplot, on a white card of its own.

The card makes it readable on a dark page too, where every colour that a figure uses would otherwise need a second one.

pyplot keeps every figure alive and shows it a second time at the end of the cell, so the figures do not use it.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread, imsave

from labkit.figures.alt import described
from labkit.shell import current_shell

DPI = 100
MARGIN, RADIUS = 10, 8
"""Of the card around a figure, in CSS pixels: nobody sees it on a white page, and on a dark one nothing sticks to the
edge."""
YOURS, OTHER, TRUTH, SHADE = "#1565c0", "#c62828", "#5f6b7a", "#eceff1"
"""Colours by role: the student's result, what it is compared with, the exact value, a region."""
LEAST_CONTRAST = 4.5
"""Of small letters with their ground, by WCAG 2, level AA."""


class LabFigure(Figure):
    """A Figure that renders itself: as a PNG with twice the pixels, for sharp screens.

    alt: what it shows, in a sentence or two, for those who cannot see it; "" where its titles, axes and notes say it.
    """

    alt = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._drawn: tuple[bytes, dict[str, int | str]] | None = None
        # Where a notebook has loaded pyplot, as widgets do, IPython has a way of its own to draw every Figure.
        if shell := current_shell():
            shell.display_formatter.formatters["image/png"].for_type(LabFigure, LabFigure._drawn_png)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict, dict]:
        """The PNG, and the same as HTML: of what a PNG says of itself, JupyterLab and nbconvert show nothing."""
        picture, metadata = self._drawn = self._repr_png_()
        return {"image/png": picture, "text/html": _element(picture, metadata)}, {"image/png": metadata}

    def element(self) -> str:
        """The picture with its words as HTML, for a widget."""
        return _element(*self._repr_png_())

    def _drawn_png(self) -> tuple[bytes, dict[str, int | str]]:
        """What `_repr_mimebundle_` has drawn just now, which IPython asks for once more."""
        drawn, self._drawn = self._drawn, None
        return drawn or self._repr_png_()

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=2 * DPI, pil_kwargs={"compress_level": 0})
        drawn.seek(0)
        card, buffer = on_a_card(imread(drawn)), io.BytesIO()
        imsave(buffer, card, format="png")
        height, width = (pixels // 2 for pixels in card.shape[:2])
        size: dict[str, int | str] = {"width": width, "height": height}
        alt = self.alt or described(self)
        return buffer.getvalue(), {**size, **({"alt": alt} if alt else {})}


def _element(picture: bytes, metadata: Mapping[str, int | str]) -> str:
    source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    size = f'width="{metadata["width"]}" height="{metadata["height"]}" style="max-width:100%;height:auto"'
    return f'<img src="{source}" {size} alt="{html.escape(str(metadata.get("alt", "")))}">'


def on_a_card(drawn: np.ndarray) -> np.ndarray:
    """The picture, (height, width, 4) with twice the pixels and from 0 to 1, with a white margin and round corners."""
    margin, radius = 2 * MARGIN, 2 * RADIUS
    card = np.pad(drawn, ((margin, margin), (margin, margin), (0, 0)), constant_values=1.0)
    from_centre = radius - 0.5 - np.arange(radius)
    corner = (radius + 0.5 - np.hypot(from_centre[:, None], from_centre)).clip(0, 1)
    for rows, corner_rows in ((slice(radius), corner), (slice(-radius, None), corner[::-1])):
        card[rows, :radius, 3], card[rows, -radius:, 3] = corner_rows, corner_rows[:, ::-1]
    return card


def ink_like(colour: str) -> str:
    """The colour for small letters on white: itself where it can be read there, else no darker than it must be.

    What a line or an area can be drawn in is often too pale for words: orange has a contrast of 2.2 with white.
    """
    ink = np.array(to_rgb(colour))
    while contrast_with_white(ink) < LEAST_CONTRAST:
        ink = ink * 0.98
    return to_hex(ink)


def contrast_with_white(ink: np.ndarray) -> float:
    """As WCAG 2 has it, from 1 (white) to 21 (black), of red, green and blue from 0 to 1."""
    linear = np.where(ink <= 0.03928, ink / 12.92, ((ink + 0.055) / 1.055) ** 2.4)
    return 1.05 / (float(linear @ (0.2126, 0.7152, 0.0722)) + 0.05)


def new_figure(width_in: float = 7.0, height_in: float = 3.6) -> tuple[LabFigure, Axes]:
    """A figure with one pair of axes: no box, a light grid."""
    figure = LabFigure(figsize=(width_in, height_in), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes
