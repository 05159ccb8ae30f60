"""What the threads of small programs do, one row a thread, and what the student's function calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.exercises.lab10.traces import Op, Trace
from labkit.figures.blank import or_a_note
from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure

_FACES = {"read": "#e3f0fb", "write": "#f9d9d6", "atomic": "#fff2c6", "barrier": TRUTH}
_WORDS = {"atomic": "add"}
"""A word that its box has room for."""
_COLUMNS = 3
_GAP = 0.5
"""Between blocks, in rows."""
_BOX, _BAR, _SPACE = 0.92, 0.25, 0.08
"""Widths: of a box with words, of a barrier, and between the two."""


@or_a_note
def thread_traces(traces: Mapping[str, Trace], classify: Callable[[Trace], str] | None = None) -> Figure:
    """The traces side by side: a row for each thread, what it does from left to right, barriers in grey.

    s3 and g3 are word 3 of shared and of global memory. classify: whose word stands beside the name; None: no word.
    """
    n_rows = -(-len(traces) // _COLUMNS)
    figure, axes = new_figure(9.2, 1.75 * n_rows)
    axes.remove()
    panels = figure.subplots(n_rows, _COLUMNS, squeeze=False)
    for panel in panels.flat:
        panel.axis("off")
    for panel, (name, trace) in zip(panels.flat, traces.items(), strict=False):
        label = classify(trace) if classify else ""
        _draw(panel, trace)
        color = {"right": YOURS, "race": OTHER, "deadlock": "#6a1b9a"}.get(label, TRUTH)
        panel.set_title(f"{name}: {label}" if label else name, loc="left", fontsize=8.5, color=color)
    figure.alt = "Threads of small programs as rows of reads, writes, atomic updates and barriers: " + ", ".join(traces)
    return figure


def _draw(axes: Axes, trace: Trace) -> None:
    y, left, height = 0.0, 0.0, 0.0
    for number, launch in enumerate(trace):
        y, columns = 0.0, _columns([thread for block in launch for thread in block])
        if number:
            axes.axvline(left - 0.25, color=TRUTH, linewidth=1.2, linestyle=":")
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                if not number:
                    axes.text(-0.15, y + 0.5, f"{b}.{t}", ha="right", va="center", fontsize=6.5, color=TRUTH)
                for (start, width), op in zip(columns, thread, strict=False):
                    _box(axes, left + start, width, y, op)
                y += 1
            y += _GAP
        height = max(height, y)
        left += max(1.0, sum(width for _, width in columns)) + 0.5
    axes.set_xlim(-0.9, max(left, 6.0))
    axes.set_ylim(height, -0.1)


def _columns(threads: Sequence[Sequence[Op]]) -> list[tuple[float, float]]:
    """Where each place of the threads' sequences begins and how wide it is: narrow where nothing but barriers stand."""
    columns, start = [], 0.0
    for ops in zip_longest(*threads):
        only_barriers = {op.kind for op in ops if op} == {"barrier"}
        columns.append((start, (_BAR if only_barriers else _BOX) + _SPACE))
        start += columns[-1][1]
    return columns


def _box(axes: Axes, x: float, column: float, y: float, op: Op) -> None:
    middle = x + (column - _SPACE) / 2
    width = _BAR if op.kind == "barrier" else _BOX
    box = Rectangle((middle - width / 2, y + 0.06), width, 0.88, facecolor=_FACES[op.kind], edgecolor=SHADE)
    axes.add_patch(box)
    if op.kind != "barrier":
        text = f"{_WORDS.get(op.kind, op.kind)} {op.space[0]}{op.place}"
        axes.text(middle, y + 0.5, text, ha="center", va="center", fontsize=6.2)
