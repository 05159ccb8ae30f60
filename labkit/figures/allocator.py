"""What a caching allocator holds: allocated and reserved bytes along a trace, and its segments with what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure
from labkit.simdevice import CachingAllocator
from labkit.spec import MiB
from labkit.units import in_bytes

Row = Sequence[int]
"""allocated_bytes, reserved_bytes, cudaMallocs and cudaFrees so far."""
FREE = "#d8dee4"
MARKS = {"cudaMalloc": "^", "cudaFree": "v"}
CLOSE_UP = 0.6
"""The axis leaves out what lies below, if never less than this part of the peak is allocated."""
MOST_MARKS = 60
"""With more calls of the driver than this, their marks would hide the lines."""


def allocator_trace(replays: Mapping[str, Sequence[Row]]) -> Figure:
    """One panel for each replay, by title: rows after each event, as the student's replay returns them."""
    if not any(replays.values()):
        raise ValueError("there is nothing to draw: none of the replays has a row")
    height_in = 2.1 * len(replays) + 0.6
    figure = LabFigure(figsize=(8.0, height_in), dpi=DPI, layout="constrained", facecolor="white")
    all_axes = figure.subplots(len(replays), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    unit_name, unit = ("GB", 1e9) if max(row[1] for rows in replays.values() for row in rows) >= 1e9 else ("MiB", MiB)
    marked: set[str] = set()
    for axes, (title, rows) in zip(all_axes, replays.items(), strict=True):
        marked |= _lines(axes, rows, unit)
        peaks = [max(row[column] for row in rows) for column in (0, 1)]
        axes.set_title(
            f"{title}: at most {in_bytes(peaks[0])} allocated, {in_bytes(peaks[1])} reserved", loc="left", fontsize=10
        )
        axes.set_ylabel(unit_name)
    all_axes[-1].set_xlabel("event of the trace")
    handles = [
        Line2D([], [], color=OTHER, lw=1.6, label="reserved: segments"),
        Patch(color=YOURS, alpha=0.75, label="allocated: blocks in use"),
    ]
    for name in MARKS:
        if name in marked:
            handles.append(Line2D([], [], color=TRUTH, lw=0, marker=MARKS[name], markersize=5, label=name))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    return figure


def _lines(axes: Axes, rows: Sequence[Row], unit: float) -> set[str]:
    """Draw one replay; returns which calls of the driver are marked."""
    marked = set()
    at = range(len(rows))
    # With an outline, or a peak that lasts a few events of thousands is too thin to be seen.
    axes.fill_between(at, [row[0] / unit for row in rows], step="post", color=YOURS, alpha=0.75, lw=0.9)
    axes.step(at, [row[1] / unit for row in rows], where="post", color=OTHER, lw=1.6)
    first = rows[0]
    # What was there before the first row was not asked for in this trace.
    before = [first if sum(first[2:]) > 1 else (0, 0, 0, 0), *rows]
    if sum(rows[-1][2:]) - sum(before[0][2:]) > MOST_MARKS:
        before = []
    for event, (last, row) in enumerate(zip(before, rows, strict=False)):
        for column, name in ((2, "cudaMalloc"), (3, "cudaFree")):
            if row[column] > last[column]:
                axes.plot(event, row[1] / unit, MARKS[name], color=TRUTH, markersize=4)
                marked.add(name)
    least = min(row[0] for row in rows)
    axes.set_ylim(bottom=0.98 * least / unit if least > CLOSE_UP * max(row[1] for row in rows) else 0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis="y", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    return marked


def segment_map(trace: Sequence[tuple[str, int, int]]) -> Figure:
    """Each segment as a bar, cut into its blocks: what is in use, and what is free.

    trace: ("malloc", ticket, bytes), ("free", ticket, 0) and ("empty_cache", 0, 0), in order; drawn is what they leave.
    """
    allocator = _after(trace)
    segments = list(allocator.segments.values())
    if not segments:
        raise ValueError("there is nothing to draw: the allocator has no segment")
    figure, axes = new_figure(8.0, 0.34 * len(segments) + 1.3)
    for row, segment in enumerate(segments):
        for block in segment.blocks:
            used = block.requested_bytes is not None
            left, width = block.start / MiB, block.nbytes / MiB
            axes.barh(row, width, left=left, height=0.7, color=YOURS if used else FREE, edgecolor="white", lw=0.8)
    names = [f"segment {one.number} ({'small' if one.small else 'large'})" for one in segments]
    axes.set_yticks(range(len(segments)), names, fontsize=8.5)
    axes.set_ylim(len(segments) - 0.4, -0.6)
    axes.set_xlabel("MiB")
    axes.grid(False, axis="y")
    figures = allocator.figures
    axes.set_title(
        f"{in_bytes(figures.allocated_bytes)} allocated, {in_bytes(figures.reserved_bytes)} reserved",
        loc="left",
        fontsize=10,
    )
    handles = [Patch(color=YOURS, label="in use"), Patch(color=FREE, label="free")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _after(trace: Sequence[tuple[str, int, int]]) -> CachingAllocator:
    """An allocator that has followed the trace."""
    allocator, blocks = CachingAllocator(), {}
    for kind, ticket, n_bytes in trace:
        if kind == "malloc":
            blocks[ticket] = allocator.malloc(n_bytes)
        elif kind == "free":
            allocator.free(blocks.pop(ticket))
        else:
            allocator.empty_cache()
    return allocator
