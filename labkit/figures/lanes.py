"""Timelines of all labs: lanes under one another on one axis of time, one colour for computing and one for sending.

What ran when is not known here: bars come in, a figure goes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labkit.figures.canvas import DPI, TRUTH, LabFigure

# Okabe and Ito's colours, told apart by every kind of colour vision.
COMPUTE, COMPUTE_BACK, COMPUTE_LATE = "#0072B2", "#56B4E9", "#003F66"
"""Computing in tones of blue: anything or forward, backward, and the weights' part of a backward pass for itself."""
TRANSFER, TRANSFER_BACK = "#E69F00", "#D55E00"
"""Sending in tones of orange: weights or inputs on their way in, gradients or results on their way out."""
HOST_WORKS, HOST_LOADS, WORKER_LOADS, WAITS, KEPT = "#009E73", "#882255", "#CC79A7", "#b0b7bf", "#CC79A7"
BAR_HEIGHT, ROW_IN, HEAD_IN, FOOT_IN = 0.72, 0.34, 0.42, 0.9
MOST_IN_A_ROW = 5
"""So many entries of a legend stand in one row."""
LEAST_SHARE, CHARACTER_SHARE = 0.045, 0.011
"""The part of the width that a bar must have to bear a text, and what each character of it takes."""


@dataclass(frozen=True)
class Bar:
    """Something that a lane is busy with: `Bar(lane=0, start=1.5, end=3.0, colour=COMPUTE, text="mm")`."""

    lane: int
    start: float
    end: float
    colour: str
    text: str = ""


@dataclass(frozen=True)
class Panel:
    """One chart. mark: a dashed line at this time. kept: (time, amount from then on), drawn as an area under the lanes.

    Panel("one step: 3 ms", ("GPU", "network"), (Bar(0, 0.0, 3.0, COMPUTE),))
    """

    title: str
    lanes: Sequence[str]
    bars: Sequence[Bar] = ()
    mark: float | None = None
    kept: Sequence[tuple[float, float]] = ()
    kept_name: str = ""


def timeline(
    panels: Sequence[Panel], legend: Mapping[str, str], xlabel: str, width_in: float = 8.0, end: float | None = None
) -> LabFigure:
    """The panels on one axis of time, which ends with the last bar unless it is said when.

    legend: by text the colour. A bar bears its text where there is room for it.
    """
    rows = [len(panel.lanes) + bool(panel.kept) or 1 for panel in panels]
    height_in = sum(ROW_IN * n + HEAD_IN for n in rows) + FOOT_IN
    figure = LabFigure(figsize=(width_in, height_in), dpi=DPI, layout="constrained", facecolor="white")
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=[n + 0.3 for n in rows])[:, 0]
    if end is None:
        end = max((bar.end for panel in panels for bar in panel.bars), default=1.0)
    most = max((amount for panel in panels for _, amount in panel.kept), default=0) or 1
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw(axes, panel, end, most)
    all_axes[-1].set_xlabel(xlabel)
    all_axes[-1].set_xlim(0, 1.02 * end)
    add_legend(figure, legend)
    return figure


def draw_bar(
    axes: Axes, bar: Bar, row: float, height: float = BAR_HEIGHT, has_room: bool = True, band: bool = False
) -> None:
    """One bar with its text in the middle, in whichever of black and white can be read on it. band: with a white line
    along its upper edge, to tell it from others of its colour; the axis points down."""
    width = bar.end - bar.start
    axes.barh(row, width, left=bar.start, height=height, color=bar.colour, edgecolor="white", lw=0.5)
    if band:
        upper = row - 0.34 * height
        axes.plot([bar.start, bar.end], [upper, upper], color="white", lw=2.5, solid_capstyle="butt")
    if bar.text and has_room:
        axes.text(
            bar.start + width / 2,
            row + 0.1 * height * band,
            bar.text,
            ha="center",
            va="center_baseline",
            fontsize=7.5,
            color=ink_on(bar.colour),
            clip_on=True,
        )


def draw_kept(
    axes: Axes, steps: Sequence[tuple[float, float]], end: float, bottom: float, height: float, most: float
) -> None:
    """An area that is `height` high where `most` is kept, over a line; the axis points down."""
    times = [time for time, _ in steps] + [end]
    tops = [bottom - height * amount / most for _, amount in steps]
    axes.fill_between(times, bottom, [*tops, tops[-1]], step="post", color=KEPT, lw=0)
    axes.plot([0, end], [bottom, bottom], color=TRUTH, lw=0.6)


def add_legend(figure: Figure, legend: Mapping[str, str]) -> None:
    """Below everything, a patch for each text."""
    handles = [Patch(color=colour, label=text) for text, colour in legend.items()]
    n_columns = len(handles) if len(handles) <= MOST_IN_A_ROW else -(-len(handles) // 2)
    figure.legend(handles=handles, loc="outside lower center", ncols=n_columns, frameon=False, fontsize=9)


def plain_axes(axes: Axes) -> None:
    """No box, no ticks beside the lanes, a light grid behind the bars."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)


def _draw(axes: Axes, panel: Panel, end: float, most: float) -> None:
    for bar in panel.bars:
        share = (bar.end - bar.start) / end
        has_room = share > LEAST_SHARE * (len(bar.text) > 2) and CHARACTER_SHARE * len(bar.text) < share
        draw_bar(axes, bar, bar.lane, has_room=has_room)
    if panel.mark is not None:
        axes.axvline(panel.mark, color=TRUTH, linewidth=1, linestyle="--")
    names, n_rows = list(panel.lanes), len(panel.lanes) or 1
    if panel.kept:
        names.append(panel.kept_name)
        last = max((bar.end for bar in panel.bars), default=0.0)
        draw_kept(axes, panel.kept, last, n_rows + BAR_HEIGHT / 2, BAR_HEIGHT, most)
        n_rows += 1
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(n_rows - 0.4, -0.6)
    plain_axes(axes)


def ink_on(colour: str) -> str:
    """Black on what is bright, white on what is dark."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"
