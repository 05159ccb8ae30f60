"""The figures of lab 06 on steps: one beside a bfloat16 gap, and singular values through Newton-Schulz; with sliders.

Without ipywidgets each is one figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from matplotlib.figure import Figure

from labkit.exercises.lab06.muon import N_ITERATIONS, polynomial
from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure
from labkit.figures.sliders import with_sliders

WEIGHTS = (0.002, 0.02, 0.2, 1.0)
RATES = tuple(digit * 10.0**power for power in (-6, -5, -4, -3) for digit in (1, 2, 5))
LIFTED, LEFT = 0.68, 1.13
"""Where five steps leave what starts between 0.01 and 1."""


def stalled_share(lr: float, scale: float = 0.02, n: int = 100_000) -> float:
    """The share of bfloat16 weights, normal with this standard deviation, that a step of `lr` leaves where they are."""
    weights = (scale * torch.randn(n, generator=torch.Generator().manual_seed(0))).bfloat16()
    return ((weights.float() - lr).bfloat16() == weights).float().mean().item()


def step_player(weight: float = 0.02, lr: float = 1e-5) -> object:
    """`step_beside_gap` under sliders for the weight and the learning rate."""
    return with_sliders(step_beside_gap, {"weight": ("weight", WEIGHTS, weight), "lr": ("learning rate", RATES, lr)})


def step_beside_gap(weight: float = 0.02, lr: float = 1e-5) -> Figure:
    """The bfloat16 numbers next to a weight with the step of size lr to scale; below, which share of weights stalls."""
    figure = LabFigure(figsize=(8.0, 4.2), dpi=DPI, layout="constrained", facecolor="white")
    above, below = figure.subplots(2, 1, height_ratios=(1, 2))
    stored = torch.tensor(weight).bfloat16()
    ends = torch.tensor([-torch.inf, torch.inf]).bfloat16()
    below_it, above_it = torch.nextafter(stored.expand(2), ends).tolist()
    values = [below_it, stored.item(), above_it]
    above.axhline(0, color=TRUTH, linewidth=0.8)
    for value in values:
        above.vlines(value, -0.2, 0.2, color=YOURS, linewidth=2)
        above.text(value, -0.6, f"{value:.6f}", ha="center", fontsize=9)
    for neighbour in (below_it, above_it):
        above.vlines((values[1] + neighbour) / 2, -0.1, 0.1, color=TRUTH, linewidth=1, linestyle=":")
    target = values[1] - lr
    nearest = torch.tensor(target).bfloat16().item()
    above.annotate("", (target, 0.05), (values[1], 0.65), arrowprops={"arrowstyle": "->", "color": OTHER})
    end = "is rounded back" if nearest == stored.item() else "arrives at another number"
    above.text(values[1], 0.75, f"a step of {lr:g} {end}", color=OTHER, fontsize=9, ha="center")
    low, high = min(below_it, target), above_it
    above.set_xlim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    above.set_ylim(-0.9, 1.2)
    above.set_axis_off()
    rates = [10 ** (-6 + k / 10) for k in range(38)]
    below.plot(rates, [100 * stalled_share(rate) for rate in rates], color=YOURS, linewidth=2)
    below.axvline(lr, color=OTHER, linewidth=1)
    below.set_xscale("log")
    below.set_xlabel("learning rate")
    below.set_ylabel("weights that stay, %")
    below.set_title("weights with σ = 0.02 in bfloat16, rounded to nearest", loc="left", fontsize=10)
    below.grid(True, color="#e3e6ea", linewidth=0.8)
    below.spines[["top", "right"]].set_visible(False)
    return figure


def newton_schulz_player(orthogonalize: Callable[[torch.Tensor], torch.Tensor]) -> object:
    """`singular_values` under a slider for the number of steps."""
    after = {name: (g, orthogonalize(g)) for name, g in _matrices().items()}

    def draw(n_steps: int) -> Figure:
        return _singular_values(after, n_steps)

    return with_sliders(draw, {"n_steps": ("steps", tuple(range(N_ITERATIONS + 1)), N_ITERATIONS)})


def _matrices(size: int = 64) -> dict[str, torch.Tensor]:
    gen = torch.Generator().manual_seed(0)
    shapes = {"square": (size, size), "4 times as wide": (size, 4 * size)}
    return {name: torch.randn(shape, generator=gen) for name, shape in shapes.items()}


def _singular_values(after: Mapping[str, tuple[torch.Tensor, torch.Tensor]], n_steps: int) -> Figure:
    """What n_steps of the polynomial make of the singular values of each matrix, beside those of its orthogonalized."""
    figure, axes = new_figure(8.0, 3.8)
    for (name, (g, result)), color in zip(after.items(), (OTHER, YOURS)):
        start = torch.linalg.svdvals(g / g.norm())
        places = range(1, len(start) + 1)
        axes.plot(places, start, color=color, linewidth=1.2, linestyle=":", label=f"{name}, at the start")
        now = polynomial(start, n_steps).sort(descending=True).values
        axes.plot(places, now, color=color, linewidth=2, label=f"{name}, after {n_steps} steps")
        axes.plot(
            places[::3], torch.linalg.svdvals(result)[::3], "o", color=color, markersize=3.5, label=f"{name}, yours"
        )
    axes.axhspan(LIFTED, LEFT, color=TRUTH, alpha=0.18)
    axes.set_yscale("log")
    axes.set_ylim(1e-4, 3)
    axes.set_xlabel("singular values, by size")
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower left")
    return figure
