"""Lab 19: how many tokens come to each expert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, LabFigure

WITHIN, BEYOND = "#1565c0", "#c62828"


def expert_load(counts: Mapping[str, Sequence[int]], factor: float = 1.25) -> Figure:
    """A panel for each routing: tokens by expert, with a line at `factor` times the mean; what is above it is red.

    counts: for each routing the tokens of each expert.
    """
    figure = LabFigure(figsize=(9.0, 2.9), dpi=DPI, layout="constrained", facecolor="white")
    rows = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    parts = []
    for axes, (name, tokens) in zip(rows, counts.items(), strict=True):
        places = factor * sum(tokens) / len(tokens)
        names = [str(expert) for expert in range(len(tokens))]
        axes.bar(names, [min(n, places) for n in tokens], color=WITHIN)
        axes.bar(names, [max(n - places, 0) for n in tokens], bottom=places, color=BEYOND)
        axes.axhline(places, color="black", linestyle="--", linewidth=1)
        axes.set(title=name, xlabel="expert")
        axes.spines[["top", "right"]].set_visible(False)
        parts.append(f"{name}: {', '.join(map(str, tokens))}")
    rows[0].set_ylabel("tokens")
    rows[-1].text(len(tokens) - 0.4, places, f"{factor:g} x the mean", ha="right", va="bottom", fontsize=9)
    figure.alt = f"Tokens by expert, with a line at {factor:g} times the mean. {'; '.join(parts)}."
    return figure
