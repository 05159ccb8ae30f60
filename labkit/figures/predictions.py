"""A student's predictions in pictures: a line in a figure, and all of a lab's guesses on one axis.

The score is HTML with drawings in it rather than a picture, so that it takes the colours of a light or a dark page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Protocol

from matplotlib.figure import Figure

GUESS = "#d17a00"
"""The colour of a prediction, in every figure. It has a contrast of 3 or more on white and on black."""
RIGHT = "#2e9e5b"
FADED = "rgba(128,128,128,0.55)"
BAND = "rgba(46,158,91,0.18)"
WIDTH, HEIGHT = 260, 18
MIN_DECADES, MAX_DECADES = 1, 3
"""What the axis shows to either side of "right": up to this power of ten; what lies beyond is drawn at its end."""

_CELL = "padding:3px 14px 3px 0;border:none;text-align:left;background:transparent;vertical-align:middle"


class Guess(Protocol):
    """What is drawn of one prediction: `labkit.predictions.Prediction`."""

    @property
    def name(self) -> str: ...
    @property
    def guess(self) -> float | str | None: ...
    @property
    def measured(self) -> float | str | None: ...
    @property
    def exact(self) -> bool: ...
    @property
    def factor(self) -> float | None: ...
    def distance(self) -> str: ...
    def with_unit(self, value: float | str) -> str: ...


def mark_prediction(figure: Figure, guess: float, axis: str = "y") -> Figure:
    """The figure with a dashed line at the guess across its first pair of axes, which it widens where it must.

    Where the axis is logarithmic and the guess is not positive, there is no place for it and no line.
    """
    axes = figure.axes[0]
    if not axes.axison:
        return figure  # a note in place of a figure
    vertical = axis == "x"
    scale = axes.get_xscale() if vertical else axes.get_yscale()
    if scale == "log" and guess <= 0:
        return figure
    first, last = axes.get_xlim() if vertical else axes.get_ylim()
    low, high = min(first, last), max(first, last)
    if not low <= guess <= high:
        room = 0.05 * (high - low)
        below, above = (guess / 1.25, guess * 1.25) if scale == "log" else (guess - room, guess + room)
        low, high = min(low, below), max(high, above)
        (axes.set_xlim if vertical else axes.set_ylim)((low, high) if first < last else (high, low))
    line = {"color": GUESS, "linestyle": (0, (5, 3)), "linewidth": 1.6}
    note = {"textcoords": "offset points", "color": GUESS, "fontsize": 9}
    if vertical:
        axes.axvline(guess, **line)
        axes.annotate("your prediction", (guess, 1), (4, -4), xycoords=("data", "axes fraction"), va="top", **note)
    else:
        axes.axhline(guess, **line)
        axes.annotate("your prediction", (0, guess), (4, 3), xycoords=("axes fraction", "data"), va="bottom", **note)
    return figure


@dataclass(frozen=True)
class PredictionScore:
    """All predictions of a lab, as a table with an axis of guess / measured, or as text."""

    lab: str
    all: tuple[Guess, ...]

    def headline(self) -> str:
        """ "Lab 02: 5 of 9 predictions made, 3 of 4 numbers within a factor of 2, 1 of 1 others right." """
        made = [one for one in self.all if one.guess is not None]
        if not self.all:
            return f"Lab {self.lab}: no predictions yet."
        parts = [f"{len(made)} of {len(self.all)} predictions made"]
        known = [one for one in made if one.measured is not None]
        choices = [one for one in known if one.exact or isinstance(one.guess, str)]
        factors = [one for one in known if one not in choices]
        if factors:
            close = sum(_is_close(one) for one in factors)
            parts.append(f"{close} of {len(factors)} numbers within a factor of 2")
        if choices:
            right = sum(one.guess == one.measured for one in choices)
            parts.append(f"{right} of {len(choices)} {'others ' if factors else ''}right")
        return f"Lab {self.lab}: {', '.join(parts)}."

    def __repr__(self) -> str:
        rows = [(one.name, _shown(one, one.guess), _shown(one, one.measured), one.distance()) for one in self.all]
        table = [("", "predicted", "measured", ""), *rows] if rows else []
        widths = [max(len(row[column]) for row in table) for column in range(3)] if table else []
        lines = ["  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in table]
        return "\n".join([self.headline(), *lines])

    def _repr_html_(self) -> str:
        decades = _decades(self.all)
        heads = "".join(f'<th style="{_CELL}">{head}</th>' for head in ("", "predicted", "measured"))
        rows = "".join(_row(one, decades) for one in self.all)
        axis = f'<th style="{_CELL}">{_axis(decades)}</th><th style="{_CELL}"></th>'
        style = "border-collapse:collapse;border:none;color:inherit;font-size:inherit"
        table = f'<table style="{style}"><tr>{heads}{axis}</tr>{rows}</table>'
        head = f'<div style="font-weight:600;margin-bottom:4px">{escape(self.headline())}</div>'
        return f'<div class="labkit-predictions" style="font-size:13px">{head}{table if self.all else ""}</div>'


def _row(one: Guess, decades: int) -> str:
    texts = (one.name, _shown(one, one.guess), _shown(one, one.measured))
    cells = "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in texts)
    strip = _strip(one, decades) if one.factor is not None else ""
    return (
        f'<tr style="background:transparent">{cells}<td style="{_CELL}">{strip}</td>'
        f'<td style="{_CELL}">{escape(one.distance())}</td></tr>'
    )


def _strip(one: Guess, decades: int) -> str:
    """One guess as a dot on the axis: green inside of the band of a factor of 2, an arrow where it lies beyond."""
    place = math.log10(one.factor)
    x, middle = _x(max(-decades, min(decades, place)), decades), HEIGHT / 2
    colour = RIGHT if _is_close(one) else GUESS
    drawn = f'<circle cx="{x:.1f}" cy="{middle}" r="5" fill="{colour}"/>'
    if abs(place) > decades:
        tip = 6 if place > 0 else -6
        drawn = (
            f'<path d="M{x - tip:.1f},{middle - 5} L{x:.1f},{middle} L{x - tip:.1f},{middle + 5} Z" fill="{colour}"/>'
        )
    left, right = _x(-math.log10(2), decades), _x(math.log10(2), decades)
    return _svg(
        f'<rect x="{left:.1f}" y="0" width="{right - left:.1f}" height="{HEIGHT}" fill="{BAND}"/>'
        f'<line x1="0" x2="{WIDTH}" y1="{middle}" y2="{middle}" stroke="{FADED}"/>'
        f'<line x1="{WIDTH / 2}" x2="{WIDTH / 2}" y1="0" y2="{HEIGHT}" stroke="{FADED}"/>{drawn}',
        one.distance(),
    )


def _axis(decades: int) -> str:
    """The labels of the axis: 1/10, right, 10."""
    texts = []
    for power in sorted({-decades, -1, 0, 1, decades}):
        label = "right" if power == 0 else f"× {10**power}" if power > 0 else f"÷ {10**-power}"
        anchor = "start" if power == -decades else "end" if power == decades else "middle"
        texts.append(
            f'<text x="{_x(power, decades):.1f}" y="13" text-anchor="{anchor}" font-size="11" '
            f'fill="currentColor">{label}</text>'
        )
    return _svg("".join(texts), "prediction divided by measurement, on a logarithmic axis")


def _svg(drawing: str, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{escape(label)}">{drawing}</svg>'
    )


def _x(power: float, decades: int) -> float:
    """Where a power of ten lies; the ends keep room for half a dot."""
    return WIDTH / 2 + power / decades * (WIDTH / 2 - 6)


def _decades(guesses: tuple[Guess, ...]) -> int:
    farthest = max((abs(math.log10(one.factor)) for one in guesses if one.factor is not None), default=0.0)
    return min(MAX_DECADES, max(MIN_DECADES, math.ceil(farthest)))


def _is_close(one: Guess) -> bool:
    return one.guess == one.measured or (one.factor is not None and 0.5 <= one.factor <= 2)


def _shown(one: Guess, value: float | str | None) -> str:
    return "–" if value is None else one.with_unit(value)
