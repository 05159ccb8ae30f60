"""Lab 03: what mixed precision does with the tensors of a step, as boxes in the colours of their dtypes.

Drawn before the exercises, so what they ask for is left out: where gradients are clipped, and which tensors stay alive.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from labkit.figures.canvas import OTHER, SHADE, TRUTH, new_figure

FLOAT32, LOW = "#9ecbee", "#f6c26b"
WIDTH, HEIGHT = 1.55, 0.8
"""Of a box; columns are 2 apart."""
TOP, BOTTOM = 2.1, 0.0
EDGE = 0.07
"""What an arrow keeps from a box."""

Box = tuple[float, float, str, str]
"""(column, height, text, colour)"""


def amp_step() -> Figure:
    """The data flow of one step: what is float32, what has 16 bits, and where the scale S comes and goes."""
    boxes: tuple[Box, ...] = (
        (0, TOP, "weights\nfloat32", FLOAT32),
        (1, TOP, "copies of them\n16 bits", LOW),
        (2, TOP, "forward: products\n16 bits", LOW),
        (3, TOP, "loss\nfloat32", FLOAT32),
        (4, TOP, "loss × S\nfloat32", FLOAT32),
        (4, BOTTOM, "backward: products\n16 bits", LOW),
        (3, BOTTOM, "gradients × S\nfloat32", FLOAT32),
        (2, BOTTOM, "gradients\nfloat32", FLOAT32),
        (0, BOTTOM, "optimizer states\nfloat32", FLOAT32),
    )
    figure, axes = _drawn(boxes)
    corner, size = (1.1, TOP - HEIGHT / 2 - 0.25), (5.86, HEIGHT + 0.5)
    axes.add_patch(
        FancyBboxPatch(corner, *size, boxstyle="round,pad=0.02", facecolor=SHADE, edgecolor="none", zorder=0)
    )
    axes.text(1.2, TOP + HEIGHT / 2 + 0.32, "torch.autocast", fontsize=9, color=TRUTH, family="monospace")
    labels = {0: "cast", 6: "÷ S", 7: "step, if all are finite"}
    for number, (start, end) in enumerate(zip(boxes, (*boxes[1:], boxes[0]), strict=True)):
        _arrow(axes, start, end, labels.get(number, ""))
    figure.alt = (
        "A circle of a training step. Float32 weights are cast to copies of 16 bits; under torch.autocast the forward "
        "pass multiplies in 16 bits and the loss is float32. The loss is multiplied by S, the backward pass multiplies "
        "in 16 bits and gives float32 gradients times S, which are divided by S. If all are finite, a step of the "
        "optimizer with float32 states changes the weights."
    )
    return figure


def amp_layers() -> Figure:
    """The tensors of two linear layers with a GELU between them, under autocast; which stay alive is not said."""
    x, x_copy, hidden, activated, result = (
        (0, BOTTOM, "input x\nfloat32", FLOAT32),
        (1, BOTTOM, "copy of x\n16 bits", LOW),
        (2, BOTTOM, "linear\n16 bits", LOW),
        (3, BOTTOM, "GELU\n16 bits", LOW),
        (4, BOTTOM, "linear: output\n16 bits", LOW),
    )
    first, first_copy, second, second_copy = (
        (1, TOP, "first weight\nfloat32", FLOAT32),
        (2, TOP, "copy of it\n16 bits", LOW),
        (3, TOP, "second weight\nfloat32", FLOAT32),
        (4, TOP, "copy of it\n16 bits", LOW),
    )
    figure, axes = _drawn((x, x_copy, hidden, activated, result, first, first_copy, second, second_copy))
    for start, end in ((x, x_copy), (first, first_copy), (second, second_copy)):
        _arrow(axes, start, end, "cast")
    for start, end in (
        (x_copy, hidden),
        (hidden, activated),
        (activated, result),
        (first_copy, hidden),
        (second_copy, result),
    ):
        _arrow(axes, start, end)
    figure.alt = (
        "Two linear layers with a GELU between them. The input and both weights are float32. Each is cast to a copy of "
        "16 bits before it is multiplied; the outputs of the first layer, the GELU and the second layer have 16 bits."
    )
    return figure


def _drawn(boxes: Sequence[Box]) -> tuple[Figure, Axes]:
    figure, axes = new_figure(8.0, 3.1)
    axes.set_axis_off()
    for column, height, text, colour in boxes:
        corner = (column * 2 - WIDTH / 2, height - HEIGHT / 2)
        axes.add_patch(
            FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle="round,pad=0.06", facecolor=colour, edgecolor="none")
        )
        axes.text(column * 2, height, text, ha="center", va="center", fontsize=8.5)
    axes.set_xlim(-1.1, 9.1)
    axes.set_ylim(-0.65, 3.0)
    return figure, axes


def _arrow(axes: Axes, start: Box, end: Box, label: str = "") -> None:
    """From the edge of one box to the edge of another in its row or column."""
    a, b, y, z = 2 * start[0], 2 * end[0], start[1], end[1]
    right, up = (b > a) - (b < a), (z > y) - (z < y)
    here = (a + right * (WIDTH / 2 + EDGE), y + up * (HEIGHT / 2 + EDGE))
    there = (b - right * (WIDTH / 2 + EDGE), z - up * (HEIGHT / 2 + EDGE))
    axes.annotate("", there, here, arrowprops={"arrowstyle": "->", "color": TRUTH, "linewidth": 1.4})
    axes.text((here[0] + there[0]) / 2, y + 0.1, label, ha="center", va="bottom", fontsize=8, color=OTHER)
