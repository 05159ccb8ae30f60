"""The figure of lab 04's noise: gradients scatter around the true one, and less in a larger batch."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure

N_DIMS, N_SHOWN, N_AVERAGED = 24, 120, 400
SHOWN = {8: "#c9d6e8", 64: "#7fa6d9", 512: YOURS}
"""Batch sizes whose gradients are drawn one by one, and their colours."""


def gradient_noise(length: float, trace: float) -> Figure:
    """Left: gradients of three batch sizes in two of 24 dimensions. Right: their mean squared length against the batch.

    length: of the true gradient, which lies along the first dimension. trace: of the covariance of one sample's.
    """
    draws = np.random.default_rng(0)

    def gradients(batch: int, n: int) -> np.ndarray:
        found = draws.normal(0.0, (trace / N_DIMS / batch) ** 0.5, (n, N_DIMS))
        found[:, 0] += length
        return found

    figure = LabFigure(figsize=(8.0, 3.4), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    for batch, color in SHOWN.items():
        left.scatter(*gradients(batch, N_SHOWN)[:, :2].T, s=8, color=color, label=f"{batch} samples")
    left.annotate("", (length, 0), (0, 0), arrowprops={"arrowstyle": "->", "color": OTHER, "linewidth": 2})
    left.set_title("gradients, and the true one (arrow)", loc="left", fontsize=10)
    left.set_aspect("equal")
    left.legend(loc="upper left", frameon=False, fontsize=8)
    sizes = 2 ** np.arange(0, 13)
    squares = [np.square(gradients(size, N_AVERAGED)).sum(1).mean() for size in sizes]
    right.plot(sizes, squares, "o", color=YOURS, label="mean squared length")
    right.plot(sizes, trace / sizes, color=TRUTH, linewidth=1, label="noise / batch size")
    right.axhline(length**2, color=OTHER, linewidth=1, label="signal")
    right.axvline(trace / length**2, color=TRUTH, linestyle="--", linewidth=1)
    right.set_title(f"critical batch: {trace / length**2:.0f} samples", loc="left", fontsize=10)
    right.set_xscale("log", base=2)
    right.set_yscale("log")
    right.set_xlabel("batch size, samples")
    right.legend(loc="upper right", frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
