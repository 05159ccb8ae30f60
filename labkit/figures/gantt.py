"""What ran when: the spans of a trace as bars, a row for each stream and one for the time in which the host waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from matplotlib.figure import Figure

from labkit.figures.lanes import (
    COMPUTE,
    HOST_LOADS,
    HOST_WORKS,
    TRANSFER,
    TRANSFER_BACK,
    WAITS,
    WORKER_LOADS,
    Bar,
    Panel,
    timeline,
)
from labkit.figures.sliders import with_sliders
from labkit.simdevice import Span

COLOURS = {
    "kernel": COMPUTE,
    "to host": TRANSFER_BACK,
    "to device": TRANSFER,
    "host works": HOST_WORKS,
    "host loads": HOST_LOADS,
    "worker loads": WORKER_LOADS,
    "host waits": WAITS,
}
LABELS = {
    "kernel": "kernels",
    "to host": "copies to the host",
    "to device": "copies to the device",
    "host works": "the host works",
    "host loads": "the host loads",
    "worker loads": "a worker loads",
    "host waits": "the host waits",
}


def gantt(
    traces: Mapping[str, Sequence[Span]] | Sequence[Span],
    in_use: bool = False,
    least_lanes: Mapping[str, int] | None = None,
) -> Figure:
    """One chart for each trace, on a common time axis that starts with the first kernel or copy of each.

    traces: by title, or a single trace. in_use: draw below each how many copied batches are in use, where every batch
    is copied once and needs one kernel. least_lanes: by title, for how many lanes there is to be room.
    """
    if not isinstance(traces, Mapping):
        traces = {"": traces}
    if not any(traces.values()):
        raise ValueError("there is nothing to draw: none of the traces has a span")
    there = {span.kind for spans in traces.values() for span in spans}
    legend = {LABELS[kind]: colour for kind, colour in COLOURS.items() if kind in there}
    panels = [_panel(title, spans, in_use, (least_lanes or {}).get(title, 0)) for title, spans in traces.items()]
    return timeline(panels, legend, "ms since the first kernel or copy")


def gantt_player(
    traces_of: Callable[[Any], Mapping[str, Sequence[Span]]],
    label: str,
    values: Sequence[Any],
    start: Any,
    in_use: bool = False,
    least_lanes: Mapping[str, int] | None = None,
) -> object:
    """`gantt` of traces_of(value) under a slider over the values (or pairs of a text and a value). least_lanes keeps
    the height where the number of lanes depends on the value.
    """
    known = cache(traces_of)
    known(start)  # a stub is met here, and not in the middle of a widget
    return with_sliders(lambda value: gantt(known(value), in_use, least_lanes), {"value": (label, values, start)})


def _panel(title: str, spans: Sequence[Span], in_use: bool, least_lanes: int) -> Panel:
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
    names = list(lanes.values()) + [""] * (least_lanes - len(lanes))
    if spans:
        title = f"{title}: {1e3 * _length_s(spans):.2f} ms".removeprefix(": ")
    if not in_use:
        return Panel(title, names, bars)
    kept = _in_use(spans, start_s)
    name = f"batches in use, ≤ {max(n for _, n in kept)}"
    return Panel(title, names, bars, kept=kept, kept_name=name)


def _in_use(spans: Sequence[Span], start_s: float) -> list[tuple[float, int]]:
    """(ms, batches in use from then on): one more when its copy begins, one less when its kernel has ended."""
    copies, kernels = (
        sorted((span for span in spans if span.kind == kind), key=lambda span: span.start_s)
        for kind in ("to device", "kernel")
    )
    changes = [(copy.start_s, 1) for copy in copies] + [(kernel.end_s, -1) for kernel in kernels]
    steps, now = [(0.0, 0)], 0
    # Where one batch ends as the next begins, there are not two at once: times of a simulation are rounded.
    for time_s, change in sorted((round(time_s, 12), change) for time_s, change in changes):
        now += change
        steps.append((1e3 * (time_s - start_s), now))
    return steps


def _lanes(spans: Sequence[Span]) -> dict[int, str]:
    """Streams in order, the host last."""
    streams = sorted({span.stream for span in spans}, key=lambda stream: (stream < 0, stream))
    return {stream: next(span.lane for span in spans if span.stream == stream) for stream in streams}


def _first_s(spans: Sequence[Span]) -> float:
    return min((span.start_s for span in spans if span.kind != "host waits"), default=0.0)


def _length_s(spans: Sequence[Span]) -> float:
    return max(span.end_s for span in spans) - _first_s(spans)
