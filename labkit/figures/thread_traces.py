"""What the threads of small programs do, one row a thread, and what the student's function calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    y, longest, left = 0.0, 1, 0
    height = 0.0
    for number, launch in enumerate(trace):
        y, longest = 0.0, max((len(thread) for block in launch for thread in block), default=1)
        if number:
            axes.axvline(left - 0.25, color=TRUTH, linewidth=1.2, linestyle=":")
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                if not number:
                    axes.text(-0.15, y + 0.5, f"{b}.{t}", ha="right", va="center", fontsize=6.5, color=TRUTH)
                for place, op in enumerate(thread):
                    _box(axes, left + place, y, op)
                y += 1
            y += _GAP
        height = max(height, y)
        left += longest + 0.5
    axes.set_xlim(-0.9, max(left, 6.5))
    axes.set_ylim(height, -0.1)


def _box(axes: Axes, x: float, y: float, op: Op) -> None:
    barrier = op.kind == "barrier"
    width = 0.25 if barrier else 0.92
    box = Rectangle((x + 0.35 * barrier, y + 0.06), width, 0.88, facecolor=_FACES[op.kind], edgecolor=SHADE)
    axes.add_patch(box)
    if not barrier:
        text = f"{_WORDS.get(op.kind, op.kind)} {op.space[0]}{op.place}"
        axes.text(x + 0.46, y + 0.5, text, ha="center", va="center", fontsize=6.2)
