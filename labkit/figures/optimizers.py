"""The figures of lab 06 on states: losses, maps of codes, steps by size of gradient, bytes per parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, TRUTH, new_figure

STYLES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, told apart by every kind of colour vision."""


def training_losses(losses: Mapping[str, Sequence[float]], window: int = 20) -> Figure:
    """Loss against step for each name, each point the mean of `window` steps."""
    figure, axes = new_figure(8.0, 3.6)
    for n, ((name, values), color) in enumerate(zip(losses.items(), STYLES)):
        # Curves that agree lie on one another: the first is a broad band beneath the others.
        means = [sum(values[i : i + window]) / window for i in range(len(values) - window + 1)]
        width, alpha = (1.6, 1.0) if n else (6.0, 0.4)
        axes.plot(range(window, len(values) + 1), means, color=color, linewidth=width, alpha=alpha, label=name)
    axes.set_xlabel("step")
    axes.set_ylabel(f"loss, mean of {window} steps")
    if losses:
        axes.legend(frameon=False)
    else:
        axes.text(0.5, 0.5, "nothing to draw yet: none of these optimizers is written", ha="center", color=TRUTH)
    return figure


def code_maps(maps: Mapping[str, torch.Tensor]) -> Figure:
    """The positive values of each map as strokes on a logarithmic line, from 1e-7 of a block's largest number to 1."""
    figure, axes = new_figure(8.0, 0.9 + 0.6 * len(maps))
    axes.grid(False)
    for row, (values, color) in enumerate(zip(maps.values(), STYLES)):
        positive = values[values > 0].tolist()
        axes.vlines(positive, row - 0.3, row + 0.3, color=color, linewidth=0.7)
        axes.plot([1e-7, min(positive) / 2], [row, row], color=OTHER, linewidth=3)
    axes.set_xscale("log")
    axes.set_xlim(1e-7, 1.3)
    axes.set_ylim(len(maps) - 0.4, -0.6)
    axes.set_yticks(range(len(maps)), maps.keys())
    axes.set_xlabel("share of the block's largest number; what lies on a red line becomes 0")
    return figure


def steps_by_gradient_size(
    quantize: Callable[..., object], dequantize: Callable[..., torch.Tensor], maps: Mapping[str, torch.Tensor]
) -> Figure:
    """The tenth step of Adam against the size of a weight's gradient, with exp_avg_sq in each unsigned map.

    The gradient of a weight is the same in nine steps and 0 in the tenth. The block of 256 weights has gradients from
    1e-4 to 1. exp_avg is exact.
    """
    figure, axes = new_figure(8.0, 3.8)
    sizes = torch.logspace(-4, 0, 256)
    exact: Callable[[torch.Tensor], torch.Tensor] = lambda square: square  # noqa: E731
    kept = {name: partial(_there_and_back, quantize, dequantize, code_map) for name, code_map in maps.items()}
    styles = [(color, "-") for color in STYLES[: len(maps)]] + [(TRUTH, "--")]
    for (name, keep), (color, line) in zip({**kept, "exact": exact}.items(), styles):
        square = torch.zeros_like(sizes)
        for _ in range(9):
            square = keep(0.999 * square + 0.001 * sizes**2)
        # In the last step the gradient is 0, as that of a rare token is: nothing but the stored moments counts.
        root = (0.999 * square / (1 - 0.999**10)).sqrt() + 1e-8
        mean = 0.9 * (1 - 0.9**9) * sizes / (1 - 0.9**10)
        axes.plot(sizes, mean / root, color=color, linewidth=2, linestyle=line, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("gradient, as a share of the largest in its block")
    axes.set_ylabel("step, in learning rates")
    axes.legend(frameon=False)
    return figure


def bytes_per_parameter(rows: Mapping[str, Sequence[float]]) -> Figure:
    """Stacked bars: bytes per parameter of weights, gradients and optimizer states, for each name."""
    figure, axes = new_figure(8.0, 1.2 + 0.5 * len(rows))
    for row, parts in enumerate(rows.values()):
        left = 0.0
        for part, label, color in zip(parts, ("weights", "gradients", "optimizer states"), STYLES):
            axes.barh(row, part, left=left, color=color, height=0.6, label=None if row else label)
            left += part
        axes.text(left + 0.15, row, f"{left:.3g}", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), rows.keys())
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.1 * max(map(sum, rows.values())))
    axes.set_xlabel("bytes per parameter")
    axes.legend(frameon=False, loc="lower right")
    return figure


def _there_and_back(
    quantize: Callable[..., object],
    dequantize: Callable[..., torch.Tensor],
    code_map: torch.Tensor,
    numbers: torch.Tensor,
) -> torch.Tensor:
    return dequantize(quantize(numbers, code_map), code_map, numbers.shape)
