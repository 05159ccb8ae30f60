"""What overlapping copies with kernels gains, and where a loop makes the host wait: from the student's own runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.figures.lanes import COMPUTE, Bar, Panel, timeline
from labkit.simdevice import Span, busy_s
from labkit.simdevice.trace import HOST

CAUSES = {
    ".item(), float(), if": "#D55E00",
    "index by a mask": "#CC79A7",
    "copy that blocks": "#E69F00",
    "synchronize": "#009E73",
}
"""Why the host waits, in Okabe and Ito's colours."""
_CAUSE_OF = {"index": "index by a mask", "nonzero": "index by a mask", "masked_select": "index by a mask"}


def overlap_gain(predicted: Mapping[float, float], measured: Mapping[float, float]) -> Figure:
    """Speed-up over the copy's time divided by the kernels': the student's formula as a line, their runs as points."""
    if not predicted or not measured:
        raise ValueError("there is nothing to draw: give at least one predicted and one measured speed-up")
    figure, axes = new_figure(6.6, 3.4)
    ratios = sorted(predicted)
    axes.plot(ratios, [predicted[ratio] for ratio in ratios], color=TRUTH, lw=1.5, label="predicted: overlap_speedup")
    axes.plot(list(measured), list(measured.values()), "o", color=YOURS, ms=7, label="measured: double_buffered")
    axes.axhline(1.0, color=OTHER, lw=1, ls="--")
    axes.annotate("no gain", (1.0, 1.0), xytext=(0, 4), textcoords="offset points", ha="center", color=OTHER)
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(measured), [f"{ratio:g}" for ratio in measured])
    axes.minorticks_off()
    axes.set_ylim(0.95, max(2.0, *predicted.values(), *measured.values()) + 0.05)
    axes.set_xlabel("time of a copy / time of its batch's kernels")
    axes.set_ylabel("times as fast as one stream")
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=9)
    return figure


def host_waits(traces: Mapping[str, Sequence[Span]]) -> Figure:
    """For each program a row in which the host waits, coloured by the cause, and one in which the device is busy."""
    if not any(traces.values()):
        raise ValueError("there is nothing to draw: none of the traces has a span")
    causes = {cause_of(span) for spans in traces.values() for span in spans if span.stream == HOST}
    legend = {cause: colour for cause, colour in CAUSES.items() if cause in causes} | {"the device works": COMPUTE}
    return timeline([_waits(title, spans) for title, spans in traces.items()], legend, "µs")


def cause_of(wait: Span) -> str:
    """The cause of a wait of the host, from the name of what it waited for."""
    if wait.name.startswith("copy"):
        return "copy that blocks"
    return _CAUSE_OF.get(wait.name, "synchronize" if wait.name == "synchronize" else ".item(), float(), if")


def _waits(title: str, spans: Sequence[Span]) -> Panel:
    first_s = _first_s(spans)
    waits = [span for span in spans if span.stream == HOST]
    work = [span for span in spans if span.stream != HOST]
    bars = [
        Bar(lane, 1e6 * (span.start_s - first_s), 1e6 * (span.end_s - first_s), colour)
        for lane, some in enumerate((waits, work))
        for span in some
        for colour in [COMPUTE if lane else CAUSES[cause_of(span)]]
    ]
    length_s = max((span.end_s for span in spans), default=0.0) - first_s
    busy = busy_s(work, "kernel", "to device", "to host") / length_s if length_s else 0.0
    times = "1 wait" if len(waits) == 1 else f"{len(waits)} waits"
    summary = f"{title}: {1e6 * length_s:,.0f} µs, {times} of the host, device busy {busy:.0%}"
    return Panel(summary, ("host waits", "device"), bars)


def _first_s(spans: Sequence[Span]) -> float:
    return min((span.start_s for span in spans), default=0.0)
