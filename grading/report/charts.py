"""The page's drawings as data: where each bar of a histogram stands. The template turns them into SVG.

The same class always gives the same drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from grading.report.statistics import histogram

WIDTH, HEIGHT = 600, 190
LEFT, TOP, BOTTOM = 28, 22, 36


@dataclass(frozen=True)
class Bar:
    """A bar's place in the drawing, its label on the axis and what to write above it."""

    x: float
    y: float
    width: float
    height: float
    label: str
    count: int


@dataclass(frozen=True)
class Histogram:
    """A drawing of `n` students; `median_x` is where the middle one stands, `median` the share in percent."""

    n: int
    bars: tuple[Bar, ...]
    median: float
    median_x: float
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    base: int = HEIGHT - BOTTOM


def histogram_of(shares: Sequence[float]) -> Histogram | None:
    """The drawing of these shares (0 to 1); None where there are none."""
    if not shares:
        return None
    bins = histogram(shares)
    step = (WIDTH - LEFT) / len(bins)
    tallest = max(each.count for each in bins)
    bars = []
    for i, each in enumerate(bins):
        height = (HEIGHT - BOTTOM - TOP) * each.count / tallest
        label = f"{each.low}–{each.high}"
        bars.append(Bar(LEFT + i * step + 3, HEIGHT - BOTTOM - height, step - 6, height, label, each.count))
    middle = min(max(median(shares), 0.0), 1.0)
    return Histogram(len(shares), tuple(bars), 100 * middle, LEFT + middle * (WIDTH - LEFT))
