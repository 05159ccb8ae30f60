"""Lab 20: what knobs save alone, in pairs and last, as a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, LabFigure


def ablation_matrix(found: Mapping[str, Any], knobs: Sequence[str], unit: str) -> Figure:
    """Diagonal: saved alone; above it the extra of each pair; in the last column what the knob saves last.

    found: as `ablation` of lab 20 returns it.
    """
    n = len(knobs)
    values = np.full((n, n + 1), np.nan)
    for i, knob in enumerate(knobs):
        values[i, i] = found["alone"][knob]
        values[i, n] = found["last"][knob]
    for (a, b), extra in found["extra"].items():
        values[knobs.index(a), knobs.index(b)] = extra
    figure = LabFigure(figsize=(1.5 * (n + 1) + 1.6, 0.6 * n + 1.2), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.subplots()
    most = max(float(np.nanmax(np.abs(values))), 1e-9)
    axes.imshow(values, cmap="RdBu", norm=TwoSlopeNorm(0.0, -most, most), aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            colour = "white" if abs(value) > 0.6 * most else "black"
            bold = "bold" if row == column else "normal"
            sign = "" if row == column or column == n else "+"
            axes.text(column, row, f"{value:{sign}.1f}", ha="center", va="center", color=colour, fontweight=bold)
    axes.axvline(n - 0.5, color="white", linewidth=6)
    axes.set_xticks(range(n + 1), [*knobs, "saved last"])
    axes.set_yticks(range(n), knobs)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"{unit}: saved alone (bold), extra of a pair (blue: they help, red: they overlap)")
    alone = ", ".join(f"{knob} {found['alone'][knob]:.1f} alone and {found['last'][knob]:.1f} last" for knob in knobs)
    extra = ", ".join(f"{a} with {b} {value:+.1f}" for (a, b), value in found["extra"].items())
    figure.alt = f"What knobs save in {unit}: {alone}. Extra of pairs: {extra}."
    return figure
