"""What a way of timing measures: the host's launches, the device's work, and where the clock and the events stood."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labkit.figures.canvas import DPI, OTHER, SHADE, LabFigure
from labkit.simdevice import Span, TimingProbe

LAUNCH, WAIT, KERNEL, FLUSH = "#009E73", "#b0b7bf", "#0072B2", "#9ecae1"
HOST_ROW, DEVICE_ROW, BAR = 0, 1, 0.62
ROWS_IN, FOOT_IN = 0.95, 0.9


def timing_methods(probes: Mapping[str, TimingProbe], true_ms: float) -> Figure:
    """One timeline for each method, by title; what it measured is shaded, from a first mark to a second.

    true_ms: what a call takes by the device's own log.
    """
    if not probes:
        raise ValueError("there is nothing to draw: give at least one method")
    height_in = ROWS_IN * len(probes) + FOOT_IN
    figure = LabFigure(figsize=(8.0, height_in), dpi=DPI, layout="constrained", facecolor="white")
    all_axes = figure.subplots(len(probes), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, one) in zip(all_axes, probes.items(), strict=True):
        _draw(axes, one)
        axes.set_title(f"{title}: reads {one.read_ms:.3g} ms", loc="left", fontsize=10)
    end_ms = 1e3 * max(_length_s(one) for one in probes.values())
    all_axes[-1].set_xlim(-0.01 * end_ms, 1.02 * end_ms)
    all_axes[-1].set_xlabel(f"ms since the method began (a call takes {true_ms:.3g} ms by the device's log)")
    handles = [
        Patch(color=LAUNCH, label="launch"),
        Patch(color=WAIT, label="the host waits, or loads code"),
        Patch(color=KERNEL, label="what is timed"),
        Patch(color=FLUSH, label="cache flush"),
        Line2D([], [], color=OTHER, lw=1.2, label="clock read"),
        Line2D([], [], color=OTHER, lw=0, marker="v", markersize=5, label="event"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8.5)
    return figure


def _draw(axes: Axes, one: TimingProbe) -> None:
    start_s = _start_s(one)

    def bar(row: int, span: Span, colour: str, **more: float) -> None:
        left_ms, width_ms = 1e3 * (span.start_s - start_s), 1e3 * (span.end_s - span.start_s)
        axes.barh(row, width_ms, left=left_ms, height=BAR, color=colour, **more)

    for span in one.spans:
        if span.kind == "host waits":
            bar(HOST_ROW, span, WAIT)
        else:
            bar(DEVICE_ROW, span, FLUSH if span.name.startswith("zero") else KERNEL, edgecolor="white", lw=0.5)
    for span in one.launches:
        bar(HOST_ROW, span, LAUNCH, edgecolor=LAUNCH, lw=0.8)
    for row, marks_s in ((HOST_ROW, one.clock_reads_s), (DEVICE_ROW, one.events_s)):
        marks_ms = [1e3 * (mark_s - start_s) for mark_s in marks_s]
        for first_ms, second_ms in zip(marks_ms[::2], marks_ms[1::2], strict=False):
            axes.axvspan(first_ms, second_ms, color=SHADE, zorder=0)
        if row == HOST_ROW:
            axes.vlines(marks_ms, row - 0.48, row + 0.48, color=OTHER, lw=1.2, zorder=5)
        else:
            axes.plot(marks_ms, [row - 0.46] * len(marks_ms), "v", color=OTHER, markersize=5, zorder=5)
    axes.set_yticks([HOST_ROW, DEVICE_ROW], ["host", "device"], fontsize=9)
    axes.set_ylim(1.55, -0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _start_s(one: TimingProbe) -> float:
    return min(
        (*(span.start_s for span in (*one.spans, *one.launches)), *one.clock_reads_s, *one.events_s), default=0.0
    )


def _length_s(one: TimingProbe) -> float:
    ends_s = (*(span.end_s for span in one.spans), *one.clock_reads_s, *one.events_s)
    return max(ends_s, default=0.0) - _start_s(one)
