"""The figures of lab 06: a step beside a bfloat16 gap, losses, maps of codes, bytes per weight, live gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure

STYLES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, told apart by every kind of colour vision."""


def stalled_share(lr: float, scale: float = 0.02, n: int = 100_000) -> float:
    """The share of bfloat16 weights, normal with this standard deviation, that a step of `lr` leaves where they are."""
    weights = (scale * torch.randn(n, generator=torch.Generator().manual_seed(0))).bfloat16()
    return ((weights.float() - lr).bfloat16() == weights).float().mean().item()


def step_beside_gap(weight: float = 0.02, lr: float = 1e-5) -> Figure:
    """The bfloat16 numbers next to a weight with the step of size lr to scale; below, which share of weights stalls."""
    figure = LabFigure(figsize=(8.0, 4.2), dpi=DPI, layout="constrained", facecolor="white")
    above, below = figure.subplots(2, 1, height_ratios=(1, 2))
    stored = torch.tensor(weight).bfloat16()
    gap = 2.0 ** (math.floor(math.log2(stored.item())) - 7)
    values = [stored.item() + k * gap for k in (-1, 0, 1)]
    above.axhline(0, color=TRUTH, linewidth=0.8)
    for value in values:
        above.vlines(value, -0.2, 0.2, color=YOURS, linewidth=2)
        above.text(value, -0.6, f"{value:.6f}", ha="center", fontsize=9)
    for middle in (values[1] - gap / 2, values[1] + gap / 2):
        above.vlines(middle, -0.1, 0.1, color=TRUTH, linewidth=1, linestyle=":")
    target = values[1] - lr
    nearest = torch.tensor(target).bfloat16().item()
    above.annotate("", (target, 0.05), (values[1], 0.65), arrowprops={"arrowstyle": "->", "color": OTHER})
    end = "is rounded back" if nearest == stored.item() else "arrives at another number"
    above.text(values[1] + gap / 20, 0.75, f"a step of {lr:g} {end}", color=OTHER, fontsize=9, ha="center")
    above.set_ylim(-0.9, 1.2)
    above.set_axis_off()
    rates = [10 ** (-6 + k / 10) for k in range(36)]
    below.plot(rates, [100 * stalled_share(rate) for rate in rates], color=YOURS, linewidth=2)
    below.axvline(lr, color=OTHER, linewidth=1)
    below.set_xscale("log")
    below.set_xlabel("learning rate")
    below.set_ylabel("weights that stay, %")
    below.set_title("weights with σ = 0.02 in bfloat16, rounded to nearest", loc="left", fontsize=10)
    below.grid(True, color="#e3e6ea", linewidth=0.8)
    below.spines[["top", "right"]].set_visible(False)
    return figure


def training_losses(losses: Mapping[str, Sequence[float]], window: int = 20) -> Figure:
    """Loss against step for each name, each point the mean of `window` steps."""
    figure, axes = new_figure(8.0, 3.6)
    for (name, values), color in zip(losses.items(), STYLES):
        means = [sum(values[i : i + window]) / window for i in range(len(values) - window + 1)]
        axes.plot(range(window, len(values) + 1), means, color=color, linewidth=1.8, label=name)
    axes.set_xlabel("step")
    axes.set_ylabel(f"loss, mean of {window} steps")
    axes.legend(frameon=False)
    return figure
