"""What ran when: the spans of a trace as bars, a row for each stream and one for the time in which the host waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labkit.figures.canvas import DPI, LabFigure
from labkit.simdevice import Span

COLOURS = {
    "kernel": "#0072B2",
    "to host": "#D55E00",
    "to device": "#E69F00",
    "host works": "#009E73",
    "worker loads": "#CC79A7",
    "host waits": "#b0b7bf",
}
"""Okabe and Ito's colours, told apart by every kind of colour vision."""
LABELS = {
    "kernel": "kernels",
    "to host": "copies to the host",
    "to device": "copies to the device",
    "host works": "the host works",
    "worker loads": "a worker loads",
    "host waits": "the host waits",
}
ROW_IN, HEAD_IN, FOOT_IN = 0.34, 0.42, 0.9
LEAST_SHARE = 0.045
"""The part of the width that a bar must have to bear its name."""


def gantt(traces: Mapping[str, Sequence[Span]] | Sequence[Span]) -> Figure:
    """One chart for each trace, on a common time axis that starts with the first kernel or copy of each.

    traces: by title, or a single trace.
    """
    if not isinstance(traces, Mapping):
        traces = {"": traces}
    if not any(traces.values()):
        raise ValueError("there is nothing to draw: none of the traces has a span")
    rows = [len(_lanes(spans)) or 1 for spans in traces.values()]
    height_in = sum(ROW_IN * n + HEAD_IN for n in rows) + FOOT_IN
    figure = LabFigure(figsize=(8.0, height_in), dpi=DPI, layout="constrained", facecolor="white")
    all_axes = figure.subplots(len(traces), 1, sharex=True, squeeze=False, height_ratios=[n + 0.3 for n in rows])[:, 0]
    end_ms = max(1e3 * (span.end_s - _first_s(spans)) for spans in traces.values() for span in spans)
    for axes, (title, spans) in zip(all_axes, traces.items(), strict=True):
        _draw(axes, spans, end_ms)
        if spans:
            title = f"{title}: {1e3 * _length_s(spans):.2f} ms".removeprefix(": ")
        axes.set_title(title, loc="left", fontsize=10)
    all_axes[-1].set_xlabel("ms since the first kernel or copy")
    all_axes[-1].set_xlim(0, 1.02 * end_ms)
    kinds = [kind for kind in COLOURS if any(span.kind == kind for spans in traces.values() for span in spans)]
    handles = [Patch(color=COLOURS[kind], label=LABELS[kind]) for kind in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    return figure


def _draw(axes: Axes, spans: Sequence[Span], end_ms: float) -> None:
    lanes, start_s = _lanes(spans), _first_s(spans)
    for row, stream in enumerate(lanes):
        for span in spans:
            if span.stream != stream:
                continue
            left_ms, width_ms = 1e3 * (span.start_s - start_s), 1e3 * (span.end_s - span.start_s)
            axes.barh(row, width_ms, left=left_ms, height=0.72, color=COLOURS[span.kind], edgecolor="white", lw=0.5)
            if width_ms > LEAST_SHARE * end_ms and 0.011 * len(span.name) < width_ms / end_ms:
                middle_ms = left_ms + width_ms / 2
                axes.text(
                    middle_ms, row, span.name, ha="center", va="center", fontsize=7.5, color="white", clip_on=True
                )
    axes.set_yticks(range(len(lanes)), list(lanes.values()), fontsize=9)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)


def _lanes(spans: Sequence[Span]) -> dict[int, str]:
    """Streams in order, the host last."""
    streams = sorted({span.stream for span in spans}, key=lambda stream: (stream < 0, stream))
    return {stream: next(span.lane for span in spans if span.stream == stream) for stream in streams}


def _first_s(spans: Sequence[Span]) -> float:
    return min((span.start_s for span in spans if span.kind != "host waits"), default=0.0)


def _length_s(spans: Sequence[Span]) -> float:
    return max(span.end_s for span in spans) - _first_s(spans)
