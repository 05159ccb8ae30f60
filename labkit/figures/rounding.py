"""Pictures of lab 02 before an exercise: which value a number is rounded to, and in which order terms are added.

They show what is asked, and draw no answer: the student's own functions are drawn by `formats` and `sums`.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure

VALUES = (4, 5, 6, 7, 8)
ROUNDED = ((4.5, 4), (5.2, 5), (5.5, 6), (6.7, 7), (7.5, 8))
"""Numbers and the values of e3m2 that they become: 4.5, 5.5 and 7.5 are ties."""


def rounding_to_even() -> Figure:
    """The values of e3m2 from 4 to 8 with their last mantissa bit, and what five others are rounded to."""
    figure, axes = new_figure(8.0, 2.2)
    axes.grid(False)
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.axhline(0, color=TRUTH, linewidth=0.8)
    for index, value in enumerate(VALUES):
        last_bit = index % 2
        axes.vlines(value, -0.16, 0.16, color=YOURS, linewidth=1.2 if last_bit else 3.5)
        axes.text(value, -0.42, f"{value}", ha="center", va="center")
        axes.text(value, -0.74, f"last bit {last_bit}", ha="center", va="center", fontsize=9, color=TRUTH)
    for x, value in ROUNDED:
        tie = x % 1 == 0.5
        axes.annotate(
            "",
            (value, 0.2),
            (x, 0.6),
            arrowprops={"arrowstyle": "->", "color": OTHER if tie else TRUTH, "linewidth": 1.4},
        )
        axes.text(x, 0.78, f"{x}, a tie" if tie else f"{x}", ha="center", fontsize=9, color=OTHER if tie else TRUTH)
    axes.set_xlim(3.7, 8.3)
    axes.set_ylim(-0.95, 1.05)
    axes.set_xticks([])
    figure.alt = (
        "A number line from 4 to 8. The ties 4.5, 5.5 and 7.5 go to 4, 6 and 8, whose last bit is 0. 5.2 and 6.7 go to "
        "the nearest numbers, 5 and 7, whose last bit is 1."
    )
    return figure


def orders_of_adding(n: int = 8, block: int | None = None) -> Figure:
    """n terms added one after the other, and half by half (or in blocks of `block`): each dot is a rounded addition.

    The path of the first term is drawn thick: it is rounded at every dot on its way.
    """
    figure = LabFigure(figsize=(8.0, 2.9), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    _tree(left, _in_a_row(list(range(n))), "one after the other")
    if block is None:
        _tree(right, _halves(list(range(n))), "half by half")
    else:
        sums = [_in_a_row(list(range(start, min(start + block, n)))) for start in range(0, n, block)]
        _tree(right, _in_a_row(sums), f"in blocks of {block}")
    return figure


def _in_a_row(parts: list) -> object:
    """Nested pairs: the first two, then each further one."""
    total = parts[0]
    for part in parts[1:]:
        total = (total, part)
    return total


def _halves(parts: list) -> object:
    half = len(parts) // 2
    return parts[0] if len(parts) == 1 else (_halves(parts[:half]), _halves(parts[half:]))


def _tree(axes: Axes, tree: object, title: str) -> None:
    """Draw nested pairs: terms below, each addition above its parts."""

    def place(part: object) -> tuple[float, int, int, bool]:
        if not isinstance(part, tuple):
            axes.text(part, -0.15, f"$x_{{{part + 1}}}$", ha="center", va="top")
            return part, 0, 0, part == 0
        places = [place(one) for one in part]
        level = 1 + max(at[1] for at in places)
        x = sum(at[0] for at in places) / 2
        first = any(at[3] for at in places)
        for below in places:
            thick = below[3]
            colour, width = (OTHER, 2.4) if thick else (TRUTH, 0.9)
            axes.plot([below[0], x], [below[1], level], color=colour, linewidth=width, zorder=1)
        axes.plot(x, level, marker="o", color=OTHER if first else YOURS, markersize=6, zorder=2)
        return x, level, 1 + max(at[2] for at in places if at[3]) if first else 0, first

    height, rounded = place(tree)[1:3]
    axes.set_title(f"{title}\n$x_1$ is rounded {rounded} times", fontsize=10)
    axes.set_ylim(-0.9, height + 0.5)
    axes.set_axis_off()
