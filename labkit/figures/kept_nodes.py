"""Lab 05, before its hard exercises: which tensors a checkpoint keeps, and when another stream may reuse memory.

Drawings of what is asked, from no measurement and no answer.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure

BLOCK = (("x", 1), ("norm", 1), ("linear", 4), ("mask", 4), ("dropout", 4), ("linear", 1))
"""(kept tensor, its bytes in units of x) of a feed-forward block with dropout, in order; its argument first."""
GAP = 0.18


def kept_and_dropped() -> Figure:
    """The tensors of one block at three moments, each as long as its bytes: filled while held, hollow once dropped."""
    figure, axes = new_figure(8.6, 3.0)
    moments = (
        ("as usual, after the forward pass", set(range(6))),
        ("checkpoint, after the forward pass", {0, 5}),
        ("checkpoint, while its backward pass runs", set(range(6))),
    )
    for row, (title, held) in enumerate(moments):
        left = 0.0
        axes.text(-0.3, row, title, ha="right", va="center", fontsize=9)
        for index, (name, width) in enumerate(BLOCK):
            is_held = index in held
            axes.barh(
                row,
                width,
                left=left,
                height=0.62,
                facecolor=(TRUTH if name == "x" else YOURS) if is_held else "white",
                edgecolor=TRUTH,
                linestyle="-" if is_held else ":",
            )
            axes.text(
                left + width / 2,
                row,
                name,
                ha="center",
                va="center",
                fontsize=8,
                color="white" if is_held else TRUTH,
                rotation=90 if width < 2 else 0,
            )
            left += width + GAP
    axes.set_xlim(-7.6, left)
    axes.set_title("filled: in memory; dotted: dropped, and computed again when it is needed", loc="left", fontsize=10)
    axes.invert_yaxis()
    _bare(axes)
    figure.alt = (
        "Tensors of a block: input x, norm, linear, mask, dropout, linear. As usual, after the forward pass all are in "
        "memory. With a checkpoint, only x and the last linear's are; the four between them are dropped. While the "
        "checkpoint's backward pass runs, all are in memory again."
    )
    return figure


def who_may_reuse() -> Figure:
    """A tensor on its way to the host, dropped at once and dropped after a wait: who has its memory when."""
    figure, axes = new_figure(8.6, 3.6)
    for base, wait in ((0.0, False), (4.0, True)):
        _two_streams(axes, base, wait)
    axes.set_xlim(-3.1, 12.2)
    axes.set_ylim(7.1, -0.9)
    _bare(axes)
    figure.alt = (
        "Two timelines with a current stream, a side stream and the owner of a piece of memory. Above, x is dropped as "
        "soon as its copy to the host is launched on the side stream: its memory belongs to y at once, and the current "
        "stream writes y while the copy still reads. Below, the current stream runs other kernels and waits for an "
        "event after the copy; only then does the memory belong to y."
    )
    return figure


def _two_streams(axes: Axes, base: float, wait: bool) -> None:
    """Three rows: kernels of the current stream, copies of the side stream, and who has the memory of x."""
    next_start = 7.0 if wait else 3.4
    title = (
        "The current stream waits for an event after the copy. Then x is dropped: all is well."
        if wait
        else "x is dropped as soon as the copy is launched: a race."
    )
    axes.text(-3.0, base - 0.6, title, fontsize=10, color=YOURS if wait else OTHER)
    for row, name in enumerate(("current stream", "side stream", "memory of x")):
        axes.text(-0.2, base + row, name, ha="right", va="center", fontsize=9)
    _bar(axes, base, 0.0, 2.0, "makes x", TRUTH)
    if wait:
        _bar(axes, base, 2.2, 6.8, "kernels that do not need this memory", TRUTH)
    _bar(axes, base, next_start, next_start + 3.0, "writes y", OTHER if not wait else YOURS)
    _bar(axes, base + 1, 2.2, 6.8, "copies x to the host", TRUTH)
    _bar(axes, base + 2, 0.0, next_start, "belongs to x", SHADE, "black")
    _bar(axes, base + 2, next_start, 10.6, "belongs to y", SHADE, "black")
    if wait:
        axes.annotate(
            "",
            (6.95, base + 0.32),
            (6.85, base + 0.72),
            arrowprops={"arrowstyle": "->", "color": YOURS},
        )
        axes.text(7.2, base + 0.97, "event, then wait_event", va="center", fontsize=9, color=YOURS)
    else:
        axes.axvspan(3.4, 6.4, ymin=0.64, ymax=0.88, color=OTHER, alpha=0.15, linewidth=0)
        axes.text(7.0, base + 0.97, "the copy reads what y has overwritten", va="center", fontsize=9, color=OTHER)


def _bar(axes: Axes, row: float, start: float, end: float, text: str, color: str, ink: str = "white") -> None:
    axes.barh(row, end - start, left=start, height=0.6, color=color, edgecolor="white")
    axes.text((start + end) / 2, row, text, ha="center", va="center", fontsize=8, color=ink)


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[["left", "bottom"]].set_visible(False)
