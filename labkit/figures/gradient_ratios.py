"""Lab 17: gradients of a run on several ranks beside those of one process, a bar for each parameter.

What is compared is drawn as it was handed in: nothing is computed here but norms and angles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from torch import Tensor

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure

Grads = Mapping[str, Tensor | None]

ALIKE, SAME_DIRECTION = 1e-3, 0.999
WIDEST = 16.0
"""Ratios beyond this, or its inverse, are drawn there."""
NAME_CHARACTERS = 40


def gradient_ratios(reference: Grads | Sequence[Grads], by_rank: Sequence[Grads], title: str = "") -> Figure:
    """A row for each parameter: the norm of its gradient on the ranks, divided by that of one process.

    reference: by name what a rank should have, for all ranks, or one mapping for each rank where they hold parts. The
    bar is the mean over the ranks, each dot a rank. Red: the gradient points elsewhere, so no factor can mend it. None
    and zeros stand at the left edge.
    """
    wanted = [reference] * len(by_rank) if isinstance(reference, Mapping) else list(reference)
    names = list(wanted[0])
    figure, axes = new_figure(8.2, 1.25 + 0.3 * len(names))
    differing = []
    for row, name in enumerate(names):
        pairs = [(right[name], got.get(name)) for right, got in zip(wanted, by_rank, strict=True)]
        ratios = [_ratio(right, got) for right, got in pairs if right is not None and right.numel()]
        turned = any(_turned(right, got) for right, got in pairs if right is not None and right.numel())
        if not ratios:
            continue
        mean = sum(ratios) / len(ratios)
        right = all(abs(one - 1) < ALIKE for one in ratios) and not turned
        colour = TRUTH if right else OTHER if turned else YOURS
        axes.plot([1, _shown(mean)], [row, row], color=colour, linewidth=7, solid_capstyle="butt", alpha=0.55)
        axes.plot([_shown(one) for one in ratios], [row] * len(ratios), "o", color=colour, markersize=4)
        axes.annotate(
            _in_words(ratios, right, turned),
            (1, row),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=colour,
            annotation_clip=False,
        )
        if not right:
            differing.append(f"{name} {_in_words(ratios, right, turned)}")
    axes.axvline(1, color=TRUTH, linewidth=1, linestyle="--")
    axes.set_xscale("log", base=2)
    axes.set_xlim(1 / WIDEST / 1.2, WIDEST * 1.2)
    ticks = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)
    axes.set_xticks(ticks, ["1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8", "16"])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), [name[-NAME_CHARACTERS:] for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.6)
    axes.set_title(title or "norm of the gradient on the ranks / in one process", loc="left", fontsize=10)
    kinds = [
        Line2D([], [], marker="o", linestyle="", color=TRUTH, markersize=4, label="a rank"),
        Patch(color=TRUTH, alpha=0.55, label="as in one process"),
        Patch(color=YOURS, alpha=0.55, label="only the size differs"),
        Patch(color=OTHER, alpha=0.55, label="another direction"),
    ]
    figure.legend(handles=kinds, loc="outside lower center", frameon=False, fontsize=9, ncols=4)
    figure.alt = "Gradients that differ from one process: " + ("; ".join(differing) or "none")
    return figure


def _ratio(right: Tensor, got: Tensor | None) -> float:
    """Of the norms; 0 where there is no gradient."""
    if got is None:
        return 0.0
    norm, wanted = got.double().norm().item(), right.double().norm().item()
    if wanted == 0:
        return 1.0 if norm == 0 else math.inf
    return norm / wanted


def _turned(right: Tensor, got: Tensor | None) -> bool:
    if got is None or not got.any() or not right.any():
        return False
    if got.shape != right.shape:
        return True
    a, b = right.double().flatten(), got.double().flatten()
    return bool(torch.dot(a, b) < SAME_DIRECTION * a.norm() * b.norm())


def _shown(ratio: float) -> float:
    if math.isnan(ratio):
        return WIDEST
    return min(max(ratio, 1 / WIDEST), WIDEST)


def _in_words(ratios: Sequence[float], right: bool, turned: bool) -> str:
    low, high = min(ratios), max(ratios)
    if right:
        return "1"
    size = f"{low:.3g}" if high - low < ALIKE * max(high, 1) else f"{low:.3g} to {high:.3g}"
    return size + ", turned" * turned
