"""Lab 03: gradients by their size over the range of fp16, before and after the student's scale."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure

FractionToZero = Callable[[torch.Tensor, torch.Tensor, float], float]
SUBNORMAL = "#e08a00"


def gradient_histogram(
    exponents: torch.Tensor,
    counts: torch.Tensor,
    fraction_to_zero: FractionToZero | None = None,
    largest_safe_scale: Callable[[torch.Tensor, torch.Tensor], float] | None = None,
    at_start: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Figure:
    """Gradients by their size over the range of fp16: unscaled above, and below times the student's scale.

    at_start: exponents and counts from the start of the training, an outline in the upper panel.

    exponents, counts: counts[i] gradients have a log2 between exponents[i] and exponents[i] + 1. Bins that
    `fraction_to_zero(exponents, counts, scale)` calls lost are drawn as such, whatever fp16 does. Without the two
    functions, before they are written: the upper panel alone, with nothing said of what is lost.
    """
    scale = largest_safe_scale(exponents, counts) if largest_safe_scale else 1.0
    factors = (1.0, scale) if largest_safe_scale else (1.0,)
    figure = LabFigure(figsize=(8.0, 0.6 + 2.3 * len(factors)), dpi=DPI, layout="constrained", facecolor="white")
    low = min(int(exponents.min()), -26)
    high = max(int(exponents.max()) + max(round(math.log2(scale)), 0), 16) + 1
    panels = figure.subplots(len(factors), 1, sharex=True, squeeze=False)[:, 0]
    for axes, factor in zip(panels, factors, strict=True):
        shift = round(math.log2(factor))
        shares = 100 * counts / counts.sum()
        moved = exponents + shift
        for where, colour, name in _parts(exponents, moved, fraction_to_zero, factor):
            axes.bar((moved[where] + 0.5).tolist(), shares[where].tolist(), width=0.9, color=colour, label=name)
        axes.axvspan(-14, 16, color=SHADE, zorder=0)
        axes.axvspan(-24, -14, color="#fdf3e0", zorder=0)
        axes.set_xlim(low, high)
        axes.set_ylabel("% of the gradients")
        name = "not scaled" if shift == 0 else f"times $2^{{{shift}}}$"
        if fraction_to_zero:
            name += f": {_percent(fraction_to_zero(exponents, counts, factor))} lost"
        axes.set_title(name, fontsize=10, loc="left")
        _plain(axes)
    axes.set_xlabel("$\\log_2$ of the size of a gradient")
    top = figure.axes[0]
    if at_start is not None:
        edges = [*at_start[0].tolist(), int(at_start[0][-1]) + 1]
        top.stairs((100 * at_start[1] / at_start[1].sum()).tolist(), edges, color="black", label="at the start")
    ceiling = 1.18 * top.get_ylim()[1]
    top.set_ylim(0, ceiling)
    top.text(1, 0.97 * ceiling, "normal numbers of fp16", ha="center", va="top", fontsize=9, color=TRUTH)
    top.text(-19, 0.97 * ceiling, "subnormal", ha="center", va="top", fontsize=9, color=TRUTH)
    figure.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def _parts(
    exponents: torch.Tensor, moved: torch.Tensor, fraction_to_zero: FractionToZero | None, factor: float
) -> list[tuple[torch.Tensor, str, str]]:
    """(which bins, colour, name) by what becomes of a gradient in fp16; `moved`: the exponents after scaling."""
    if fraction_to_zero is None:
        return [(moved == moved, YOURS, "late in training")]
    one = torch.ones(1, dtype=torch.int64)
    lost = torch.tensor([fraction_to_zero(bin_[None], one, factor) > 0.5 for bin_ in exponents])
    parts = [
        (lost, OTHER, "rounded to zero"),
        (~lost & (moved < -14), SUBNORMAL, "subnormal: fewer bits"),
        (~lost & (moved >= -14) & (moved < 16), YOURS, "normal"),
    ]
    infinite = ~lost & (moved >= 16)
    return [*parts, (infinite, "black", "infinite")] if infinite.any() else parts


def _percent(fraction: float) -> str:
    return "< 0.001 %" if 0 < fraction < 1e-5 else f"{100 * fraction:.2g} %"


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis="y", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
