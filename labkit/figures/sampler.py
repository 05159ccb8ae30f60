"""Lab 15: which rank sees which sample in which epoch, by the student's sampler."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, LabFigure

RANK_COLORS = ("#1565c0", "#ef8f00", "#2e7d32", "#8e24aa", "#5f6b7a", "#c62828", "#00838f", "#6d4c41")
NOBODY, SEVERAL = "white", "black"


def who_sees_what(
    sampler: Callable[..., Iterable[int]], n_samples: int = 48, world_size: int = 4, n_epochs: int = 3
) -> Figure:
    """A row for each epoch, a box for each sample, in the colour of the rank that gets it, with the step at which it
    comes. White: nobody gets it; black: several ranks or one rank twice.

    sampler: (n_samples, rank, world_size) -> an iterable with set_epoch. world_size: at most 8.
    """
    owner = np.full((n_epochs, n_samples), -1)
    step = np.full((n_epochs, n_samples), -1)
    for rank in range(world_size):
        mine = sampler(n_samples, rank, world_size)
        for epoch in range(n_epochs):
            mine.set_epoch(epoch)
            for at, index in enumerate(mine):
                owner[epoch, int(index)] = rank if owner[epoch, int(index)] == -1 else world_size
                step[epoch, int(index)] = at
    figure = LabFigure(figsize=(9.0, 0.9 + 0.38 * n_epochs), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    palette = ListedColormap([NOBODY, *RANK_COLORS[:world_size], SEVERAL])
    axes.pcolormesh(owner, cmap=palette, vmin=-1.5, vmax=world_size + 0.5, edgecolors="white", linewidth=1)
    for epoch, index in zip(*np.nonzero(owner >= 0), strict=True):
        axes.text(index + 0.5, epoch + 0.5, step[epoch, index], ha="center", va="center", color="white", fontsize=7)
    axes.invert_yaxis()
    axes.set_yticks([epoch + 0.5 for epoch in range(n_epochs)], [f"epoch {epoch}" for epoch in range(n_epochs)])
    axes.set_xticks([index + 0.5 for index in range(0, n_samples, 8)], range(0, n_samples, 8))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("index in the dataset; the number in a box is the step at which its rank gets it")
    for rank in range(world_size):
        axes.plot([], [], "s", color=RANK_COLORS[rank], label=f"rank {rank}")
    figure.legend(frameon=False, ncols=world_size, loc="outside upper right", fontsize=9)
    return figure
