"""Lab 15: SGD on a quadratic whose gradients are some steps old. It runs the functions that it is given."""

from __future__ import annotations

from collections.abc import Callable

import torch
from matplotlib.figure import Figure
from torch import Tensor

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure

StaleSgd = Callable[[Callable[[Tensor], Tensor], Tensor, float, int, int], list[Tensor]]
DELAYS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
SHOWN = {0: TRUTH, 2: YOURS, 8: OTHER}
LR, N_SHOWN, N_TRIED = 0.25, 40, 1500


def late_gradients(stale_sgd: StaleSgd, largest_stable_lr: Callable[[float, int], float]) -> Figure:
    """Left: the weight of a quadratic of curvature 1 by step, for three delays. Right: which step sizes converge."""
    figure = LabFigure(figsize=(8.0, 3.6), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    for delay, colour in SHOWN.items():
        left.plot(range(N_SHOWN + 1), _run(stale_sgd, LR, delay, N_SHOWN), color=colour, label=f"{delay} steps late")
    left.set_ylim(-3, 3)
    left.set_xlabel(f"step, with a step size of {LR}")
    left.set_title("distance from the minimum", loc="left", fontsize=10)
    limits = [largest_stable_lr(1.0, delay) for delay in DELAYS]
    right.plot(DELAYS, limits, color=YOURS, label="largest_stable_lr")
    tried = [(delay, limit * times) for delay, limit in zip(DELAYS, limits) for times in (0.7, 0.9, 1.1, 1.4)]
    shrinks = {at: abs(_run(stale_sgd, at[1], at[0], N_TRIED)[-1]) < 1 for at in tried}
    for good, marker, name in ((True, "o", "converges"), (False, "x", "diverges")):
        points = [at for at in tried if shrinks[at] is good]
        right.plot(
            *zip(*points) if points else ([], []), color=TRUTH, linestyle="none", marker=marker, ms=4, label=name
        )
    right.set_yscale("log")
    right.set_yticks((0.1, 0.2, 0.5, 1, 2), ("0.1", "0.2", "0.5", "1", "2"))
    right.minorticks_off()
    right.set_xticks(DELAYS)
    right.set_xlabel("steps that the gradient is late")
    right.set_title("step size, curvature 1", loc="left", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=9)
    return figure


def _run(stale_sgd: StaleSgd, lr: float, delay: int, n_steps: int) -> list[float]:
    """The weight from 1 on, whose minimum is at 0; what is too far away to draw ends there."""
    weights = stale_sgd(lambda w: w, torch.ones(1, dtype=torch.float64), lr, delay, n_steps)
    return [1.0, *(float(one.clamp(-1e6, 1e6)) for one in weights)]
