"""A profiler's trace: what ran on the device when, and the student's own table of kernels beside the idle time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.figures.gantt import gantt
from labkit.simdevice import Span

LONGEST_NAME = 38
N_STRIPS = 400
"""No copy is drawn narrower than this part of the whole: one of 4 µs would not be seen."""


def device_timeline(events: Sequence[Mapping[str, Any]], title: str = "") -> Figure:
    """The given events of the device, a row for each stream in the order of its number."""
    rows = {stream: at for at, stream in enumerate(sorted({event["args"]["stream"] for event in events}))}
    end_us = max((event["ts"] + event["dur"] for event in events), default=0.0)
    strip_us = (end_us - min((event["ts"] for event in events), default=0.0)) / N_STRIPS
    spans = []
    for event in events:
        kind, start_us = _kind(event["name"]), event["ts"]
        shown_us = event["dur"] if kind == "kernel" else max(event["dur"], min(strip_us, end_us - start_us))
        row = rows[event["args"]["stream"]]
        spans.append(Span(row, short_name(event["name"]), start_us * 1e-6, (start_us + shown_us) * 1e-6, kind))
    figure = gantt({title: spans})
    figure.axes[0].set_yticks(range(len(rows)), [f"stream {stream}" for stream in rows], fontsize=9)
    return figure


def kernel_bars(report: Mapping[str, Any], marks: Sequence[str], n_rows: int = 8) -> Figure:
    """The longest rows of the table as bars, those on tensor cores in another colour, and the idle time below them."""
    rows = list(report["kernels"])
    if not rows:
        raise ValueError("there is nothing to draw: the table of kernels is empty")
    shown, rest = rows[:n_rows], rows[n_rows:]
    labels = [f"{n_calls} x {short_name(name)}" for name, n_calls, _ in shown]
    times_us = [total_us for _, _, total_us in shown]
    colours = [YOURS if any(mark in name for mark in marks) else TRUTH for name, _, _ in shown]
    if rest:
        labels.append(f"{len(rest)} more kernels")
        times_us.append(sum(total_us for _, _, total_us in rest))
        colours.append(TRUTH)
    labels.append("idle")
    times_us.append(report["idle_us"])
    colours.append(OTHER)
    figure, axes = new_figure(7.6, 0.3 * len(labels) + 1.1)
    axes.barh(range(len(labels)), times_us, color=colours, height=0.7)
    for row, time_us in enumerate(times_us):
        axes.annotate(f"{time_us:,.0f}", (time_us, row), xytext=(3, 0), textcoords="offset points", va="center", size=8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, 1.15 * max(times_us) or 1.0)
    axes.set_xlabel("µs in all")
    handles = [
        Patch(color=YOURS, label=f"on tensor cores: {report['tensor_core_share']:.0%} of the kernels' time"),
        Patch(color=TRUTH, label="other kernels"),
        Patch(color=OTHER, label="nothing runs"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def short_name(name: str) -> str:
    """A kernel's name without return type, namespaces, template arguments and parameters, cut to what fits."""
    name = re.sub(r"\(anonymous namespace\)::", "", name)
    if name.startswith(("Memcpy", "Memset")):
        return name
    # CUTLASS names the product in the template's argument.
    name = re.sub(r"^void cutlass::Kernel2?<(\w+)>.*", r"\1", name)
    base = re.sub(r"[<(].*", "", name.removeprefix("void "))
    base = base.split("::")[-1]
    functor = re.search(r"(\w*Functor\w*)", name)
    if functor:
        base += f" {functor[1]}"
    return base if len(base) <= LONGEST_NAME else base[: LONGEST_NAME - 1] + "…"


def _kind(name: str) -> str:
    if name.startswith("Memcpy HtoD"):
        return "to device"
    return "to host" if name.startswith("Memcpy DtoH") else "kernel"
