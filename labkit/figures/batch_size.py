"""The figures of lab 04: what each token counts in an accumulated gradient, and what accumulation does to memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch.nn import functional as F

from labkit.exercises.lab04.accumulate import IGNORED, Accumulation, Loader, accumulation_inputs, network
from labkit.figures.canvas import DPI, OTHER, YOURS, LabFigure, new_figure
from labkit.meters import track_memory
from labkit.spec import KiB

TOKENS_A_BOX = 8


def token_weights(lengths: Sequence[int]) -> Figure:
    """A row for each text, a box for each 8 tokens, coloured by how much a token counts in the accumulated gradient.

    lengths: tokens of each text, one text a micro-batch. Upper: a mean of means. Lower: a mean over tokens.
    """
    figure = LabFigure(figsize=(8.0, 3.8), dpi=DPI, layout="constrained", facecolor="white")
    weights = {
        f"a mean of means: loss / {len(lengths)}": [1 / (len(lengths) * n) for n in lengths],
        "a mean over tokens": [1 / sum(lengths) for _ in lengths],
    }
    most = max(weights[next(iter(weights))])
    for place, (title, each) in enumerate(weights.items()):
        axes = figure.add_subplot(2, 1, place + 1)
        for row, (n, weight) in enumerate(zip(lengths, each, strict=True)):
            for start in range(0, n, TOKENS_A_BOX):
                color = (0.93 - 0.85 * weight / most, 0.95 - 0.55 * weight / most, 0.97 - 0.22 * weight / most)
                axes.add_patch(Rectangle((start, row + 0.1), TOKENS_A_BOX - 0.6, 0.8, facecolor=color))
            axes.text(n + 3, row + 0.5, f"{weight:.2%} each, {weight * n:.1%} together", va="center", fontsize=7.5)
        axes.set_xlim(0, 1.3 * max(lengths))
        axes.set_ylim(len(lengths), 0)
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.set_title(title, loc="left", fontsize=10)
        if place:
            axes.set_xlabel("tokens")
    return figure


def accumulation_memory(train_epoch: Callable[..., object], n_micro: int = 8) -> Figure:
    """Live memory of one window of micro-batches, with the student's 04-accumulate and with one backward for all.

    Bytes are beyond parameters and texts; the horizontal axis counts operations.
    """
    figure, axes = new_figure(8.0, 3.2)
    ways = {"one backward pass for all losses": (_one_backward, OTHER), "yours": (train_epoch, YOURS)}
    for name, (train, color) in ways.items():
        tree = accumulation_inputs(
            Accumulation(n_micro, n_micro, n_texts=8, longest=64), torch.Generator().manual_seed(2)
        )
        model, mine = network(tree["weights"]), tree["ranks"][0]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with track_memory(model, sites=False) as profile:
            train(model, optimizer, Loader(mine["x"], mine["y"]), n_micro, 1e3, lambda value: value)
        curve = [(n_bytes - profile.tracker.curve[0]) / KiB for n_bytes in profile.tracker.curve]
        axes.plot(curve, color=color, linewidth=1.4, label=f"{name}: peak {max(curve):.0f} KiB")
    axes.set_xlabel("operation")
    axes.set_ylabel("live memory, KiB")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", frameon=False, fontsize=9)
    return figure


def _one_backward(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks) -> None:
    """The mistake: every micro-batch's graph lives until the end of the window. Nothing is clipped."""
    pairs = list(loader)
    n = sum(int((y != IGNORED).sum()) for _, y in pairs)
    losses = [F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") for x, y in pairs]
    (sum(losses) / n).backward()
    optimizer.step()
    optimizer.zero_grad()
