"""What one program of a kernel touches, step by step: the student's own loads and stores on the tensors they belong to.

Kernels run in Triton's interpreter, so on a CPU only. A kernel that is wrong is drawn as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from labkit.figures.canvas import OTHER, TRUTH, new_figure
from labkit.meters.traffic.accesses import Access, track_accesses
from labkit.meters.traffic.recorder import NOWHERE

MOST_LINES = 14
"""Steps that are written out; further ones are drawn, and counted in a last line."""
MOST_NUMBERED = 24
"""Tensors with no more columns than this have their elements outlined."""


def program_steps(call: Callable[[], object], program: int | tuple[int, ...] = 0, launch: int = 0) -> Figure:
    """Each tensor as a grid, with the elements that one program loads (blue) and stores (red), and a list of its steps.

    The darker an element, the later it is touched. program: a number along the first axis of the grid, or one for each
    axis; where it touches nothing, as in a grid that is cut up otherwise, the middle one of those that do is drawn.
    launch: which one of `call`, from 0 on. What the call raises is drawn under what happened until then. Raises
    ValueError where nothing touches a tensor in this launch.
    """
    error = ""
    with track_accesses() as accesses:
        try:
            call()
        except NotImplementedError:
            # A blank stub: the figure says so by itself.
            raise
        except Exception as raised:
            error = f"{type(raised).__name__}: {str(raised).splitlines()[0][:110] if str(raised) else ''}"
    wanted = (*((program,) if isinstance(program, int) else program), 0, 0)[:3]
    ran = sorted({one.program for one in accesses if one.launch == launch})
    if not ran:
        raise ValueError(
            f"no program of launch {launch} touches anything: {error or 'the call launches no such kernel'}"
        )
    drawn = wanted if wanted in ran else ran[len(ran) // 2]
    steps = [one for one in accesses if one.launch == launch and one.program == drawn]
    names = list(dict.fromkeys(one.argument for one in steps if one.argument != NOWHERE))
    lines = _in_words(steps)
    figure, axes = new_figure(8.6, 2.6 + 0.19 * len(lines))
    axes.remove()
    upper, lower = figure.subfigures(2, 1, height_ratios=(2.4, 0.2 + 0.19 * len(lines)))
    panels = upper.subplots(1, max(1, len(names)), squeeze=False)[0]
    for panel, name in zip(panels, names):
        _tensor(panel, name, steps)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    where = ", ".join(map(str, drawn))
    upper.suptitle(f"{steps[0].kernel}, program ({where}): loads blue, stores red, later steps darker", fontsize=10)
    text = "\n".join([*lines, *([f"then {error}"] if error else [])])
    lower.text(0.01, 0.98, text, family="monospace", fontsize=8, va="top", color=TRUTH)
    return figure


def _tensor(axes: Axes, name: str, steps: Sequence[Access]) -> None:
    """One argument: a vector as a row, a matrix as it is, more axes with the last one as columns."""
    own = [(number, one) for number, one in enumerate(steps) if one.argument == name]
    shape, strides = own[0][1].shape, own[0][1].strides
    n_cols = shape[-1] if shape else 1
    n_rows = int(np.prod(shape[:-1])) if len(shape) > 1 else 1
    places = _places(shape, strides)
    colors = np.full((n_rows, n_cols, 3), 0.95)
    for number, one in own:
        depth = 0.35 + 0.6 * (number + 1) / len(steps)
        color = colormaps["Reds" if one.kind != "load" else "Blues"](depth)[:3]
        for element in np.unique(one.elements):
            if (place := places.get(int(element))) is not None:
                colors[place] = color
    axes.imshow(colors, aspect="auto" if n_rows == 1 else "equal", interpolation="nearest")
    if n_cols <= MOST_NUMBERED and n_rows <= MOST_NUMBERED:
        for row in range(n_rows):
            for col in range(n_cols):
                axes.add_patch(Rectangle((col - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=0.8))
    n_outside = sum(one.n_outside for _, one in own)
    outside = f"\n{n_outside} lanes outside of it" if n_outside else ""
    axes.set_title(f"{name} {tuple(shape)}{outside}", fontsize=9, color=OTHER if n_outside else TRUTH)
    axes.grid(visible=False)
    axes.tick_params(labelsize=7)
    # Numbers below a narrow matrix would run into one another.
    axes.xaxis.set_major_locator(MaxNLocator(nbins=2 if 2 * n_cols < n_rows else 4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    if n_rows == 1:
        axes.set_yticks([])


def _places(shape: tuple[int, ...], strides: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """Offset of an element from the first one -> its (row, column) in the drawing."""
    at = np.zeros(shape or (1,), np.int64)
    for axis, stride in enumerate(strides):
        numbers = np.arange(shape[axis]).reshape([-1 if other == axis else 1 for other in range(len(shape))])
        at = at + stride * numbers
    at = at.reshape(-1, shape[-1] if shape else 1)
    return {int(offset): divmod(number, at.shape[1]) for number, offset in enumerate(at.reshape(-1))}


def _in_words(steps: Sequence[Access]) -> list[str]:
    """A line for each step: " 3 load   a_ptr     512 lanes, 96 masked: elements 40 to 1,475"."""
    lines = []
    for number, one in enumerate(steps[:MOST_LINES], start=1):
        first, last = int(one.elements.min()), int(one.elements.max())
        which = f"element {first:,}" if first == last else f"elements {first:,} to {last:,}"
        masked = f", {one.n_masked:,} masked" if one.n_masked else ""
        outside = f", {one.n_outside:,} OUTSIDE" if one.n_outside else ""
        n_lanes = one.elements.size + one.n_masked
        lanes = f"{n_lanes:6,} {'lanes' if n_lanes > 1 else 'lane'}"
        lines.append(f"{number:3} {one.kind:6} {one.argument:14} {lanes}{masked}{outside}: {which}")
    if len(steps) > MOST_LINES:
        lines.append(f"    and {len(steps) - MOST_LINES} more steps")
    return lines
