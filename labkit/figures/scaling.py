"""The figure of scaling laws: the student's fits through tables of runs. It fits nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, TRUTH, LabFigure

FitScalingLaw = Callable[[torch.Tensor, torch.Tensor], tuple[float, float, float]]
Table = tuple[torch.Tensor, torch.Tensor]

# Okabe and Ito's colours, told apart by every kind of colour vision, and a marker each.
STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "v"))


def scaling_law(fit_scaling_law: FitScalingLaw, tables: Mapping[str, Table], beyond: float = 3.0) -> Figure:
    """Left: the losses, the fitted laws, and their irreducible losses dotted. Right: what is left above those.

    fit_scaling_law: (size, loss) -> (constant, exponent, irreducible); tables: name -> (size, loss).
    beyond: how many times further than the largest run the laws are drawn.
    """
    figure = LabFigure(figsize=(8.0, 4.2), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    for (name, (size, loss)), (color, marker) in zip(tables.items(), STYLES):
        constant, exponent, irreducible = (float(x) for x in fit_scaling_law(size, loss))
        x = torch.logspace(
            float(size.min().log10()), float((size.max() * beyond).log10()), 100, dtype=torch.float64
        ).numpy()
        reducible = constant * x**-exponent
        dots = {"color": color, "marker": marker, "linestyle": "none", "markersize": 4.5}
        left.plot(size, loss, **dots)
        left.plot(x, irreducible + reducible, color=color, linewidth=1.5)
        left.axhline(irreducible, color=color, linewidth=0.9, linestyle=":")
        above = loss - irreducible
        right.plot(size[above > 0], above[above > 0], **dots)
        right.plot(x, reducible, color=color, linewidth=1.5, label=f"{name}: α = {exponent:.3g}, E = {irreducible:.3g}")
    for axes, title in ((left, "loss (dotted: E)"), (right, "loss − E")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("size N, number of parameters")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(colors=TRUTH)
    figure.legend(loc="outside lower center", frameon=False, fontsize=9, ncols=2 if len(tables) > 3 else 3)
    return figure
