"""Lab 11: the operations of eager mode and the kernels of compiled code, each as a bar of the bytes that it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure
from labkit.meters.compile import Kernel

KIB = 2**10
EAGER = "#90a4ae"
COLORS = {"eager operation": EAGER, "call into a library": OTHER, "generated kernel": YOURS}
MOST_LETTERS = 30
COLUMN_INCHES, LEAST_INCHES = 3.3, 5.0
"""Wide enough for a column's bars and labels, and for the legend under one column alone."""


def fused_bytes(columns: Mapping[str, Sequence[Kernel]], ideal_bytes: int, eager: Sequence[str] = ()) -> Figure:
    """A column of bars for each way to run the same function, first to last from top to bottom; all on one scale.

    eager: the names of those whose kernels are PyTorch's own, one an operation. The dashed line is what one kernel
    has to move that reads every input once and writes the result once.
    """
    n_rows = max(len(kernels) for kernels in columns.values())
    width = max(COLUMN_INCHES * len(columns), LEAST_INCHES)
    figure = LabFigure(figsize=(width, 1.6 + 0.26 * n_rows), dpi=DPI, layout="constrained")
    all_axes = figure.subplots(1, len(columns), sharex=True, squeeze=False)[0]
    widest = max(ideal_bytes, *(kernel.total_bytes for kernels in columns.values() for kernel in kernels)) / KIB
    for axes, (name, kernels) in zip(all_axes, columns.items(), strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.axvline(ideal_bytes / KIB, color=TRUTH, linestyle="--", linewidth=1)
        for row, kernel in enumerate(kernels):
            axes.barh(row, kernel.total_bytes / KIB, height=0.7, color=COLORS[_kind(kernel, name in eager)])
        axes.set_yticks(range(len(kernels)), [_label(kernel) for kernel in kernels], fontsize=7)
        axes.set_ylim(n_rows - 0.5, -0.5)
        axes.set_xlim(0, 1.05 * widest)
        total = sum(kernel.total_bytes for kernel in kernels)
        count = f"{len(kernels)} kernel{'s' * (len(kernels) != 1)}"
        axes.set_title(f"{name}\n{count}, {total / ideal_bytes:.1f} × the ideal", loc="left", fontsize=9)
        axes.set_xlabel("KiB read and written", fontsize=8)
        axes.tick_params(axis="x", labelsize=8)
    handles = [Patch(color=color, label=label) for label, color in COLORS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _kind(kernel: Kernel, is_eager: bool) -> str:
    if is_eager:
        return "eager operation"
    return "generated kernel" if kernel.generated else "call into a library"


def _label(kernel: Kernel) -> str:
    text = " + ".join(kernel.operations)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 2]} …"
