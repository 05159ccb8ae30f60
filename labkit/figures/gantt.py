"""What ran when: the spans of a trace as bars, a row for each stream and one for the time in which the host waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from labkit.figures.lanes import (
    COMPUTE,
    HOST_WORKS,
    TRANSFER,
    TRANSFER_BACK,
    WAITS,
    WORKER_LOADS,
    Bar,
    Panel,
    timeline,
)
from labkit.simdevice import Span

COLOURS = {
    "kernel": COMPUTE,
    "to host": TRANSFER_BACK,
    "to device": TRANSFER,
    "host works": HOST_WORKS,
    "worker loads": WORKER_LOADS,
    "host waits": WAITS,
}
LABELS = {
    "kernel": "kernels",
    "to host": "copies to the host",
    "to device": "copies to the device",
    "host works": "the host works",
    "worker loads": "a worker loads",
    "host waits": "the host waits",
}


def gantt(traces: Mapping[str, Sequence[Span]] | Sequence[Span]) -> Figure:
    """One chart for each trace, on a common time axis that starts with the first kernel or copy of each.

    traces: by title, or a single trace.
    """
    if not isinstance(traces, Mapping):
        traces = {"": traces}
    if not any(traces.values()):
        raise ValueError("there is nothing to draw: none of the traces has a span")
    there = {span.kind for spans in traces.values() for span in spans}
    legend = {LABELS[kind]: colour for kind, colour in COLOURS.items() if kind in there}
    panels = [_panel(title, spans) for title, spans in traces.items()]
    return timeline(panels, legend, "ms since the first kernel or copy")


def _panel(title: str, spans: Sequence[Span]) -> Panel:
    lanes, start_s = _lanes(spans), _first_s(spans)
    rows = list(lanes)
    bars = [
        Bar(
            rows.index(span.stream),
            1e3 * (span.start_s - start_s),
            1e3 * (span.end_s - start_s),
            COLOURS[span.kind],
            span.name,
        )
        for span in spans
    ]
    if spans:
        title = f"{title}: {1e3 * _length_s(spans):.2f} ms".removeprefix(": ")
    return Panel(title, list(lanes.values()), bars)


def _lanes(spans: Sequence[Span]) -> dict[int, str]:
    """Streams in order, the host last."""
    streams = sorted({span.stream for span in spans}, key=lambda stream: (stream < 0, stream))
    return {stream: next(span.lane for span in spans if span.stream == stream) for stream in streams}


def _first_s(spans: Sequence[Span]) -> float:
    return min((span.start_s for span in spans if span.kind != "host waits"), default=0.0)


def _length_s(spans: Sequence[Span]) -> float:
    return max(span.end_s for span in spans) - _first_s(spans)
