"""Lab 19: how many tokens come to each expert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from labkit.figures.canvas import DPI, LabFigure, new_figure
from labkit.figures.sliders import with_sliders

WITHIN, BEYOND = "#1565c0", "#c62828"
SHARED = ((0.0, "0"), (0.25, "0.25"), (0.5, "0.5"), (1.0, "1"), (2.0, "2"))
FACTORS = (0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)


def expert_load(counts: Mapping[str, Sequence[int]], factor: float = 1.25) -> Figure:
    """A panel for each routing: tokens by expert, with a line at `factor` times the mean; what is above it is red.

    counts: for each routing the tokens of each expert.
    """
    figure = LabFigure(figsize=(9.0, 2.9), dpi=DPI, layout="constrained", facecolor="white")
    rows = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    parts = []
    for axes, (name, tokens) in zip(rows, counts.items(), strict=True):
        places = factor * sum(tokens) / len(tokens)
        _bars(axes, [min(n, places) for n in tokens], [max(n - places, 0) for n in tokens], places)
        axes.set(title=name, xlabel="expert")
        parts.append(f"{name}: {', '.join(map(str, tokens))}")
    rows[0].set_ylabel("tokens")
    rows[-1].text(len(tokens) - 0.4, places, f"{factor:g} x the mean", ha="right", va="bottom", fontsize=9)
    figure.alt = f"Tokens by expert, with a line at {factor:g} times the mean. {'; '.join(parts)}."
    return figure


def expert_player(
    capacity: Callable[[int, int, int, float], int],
    dispatch: Callable[[Tensor, int, int], tuple[Tensor, Tensor]],
    logits_of: Callable[[float], Tensor],
    shared: float = 1.0,
    factor: float = 1.25,
) -> object:
    """What a student's functions keep (blue) and drop (red) of each expert's tokens, k = 1, under a slider over the
    places and one over the length of a direction that all tokens share.

    logits_of: by that length, the router's scores of the tokens.
    """

    def draw(shared: float, factor: float) -> Figure:
        logits = logits_of(shared)
        n_tokens, n_experts = logits.shape
        places = capacity(n_tokens, n_experts, 1, factor)
        experts, kept = (one[:, 0] for one in dispatch(logits, 1, places))
        within, beyond = (experts[some].bincount(minlength=n_experts).tolist() for some in (kept, ~kept))
        wanted = [a + b for a, b in zip(within, beyond, strict=True)]
        figure, axes = new_figure(8.0, 3.2)
        _bars(axes, within, beyond, places)
        axes.grid(False, axis="x")
        busiest, dropped = max(wanted) * n_experts / n_tokens, sum(beyond) / n_tokens
        empty = 1 - sum(within) / max(places * n_experts, 1)
        title = f"busiest expert: {busiest:.2f} x the mean; dropped: {dropped:.0%}; empty places: {empty:.0%}"
        axes.set(xlabel="expert", ylabel="tokens")
        axes.text(n_experts - 0.4, places, f"{places} places", ha="right", va="bottom", fontsize=9)
        axes.set_title(title, loc="left", fontsize=10)
        figure.alt = (
            f"{title}. {places} places at each expert. Kept by expert: {', '.join(map(str, within))}; dropped: "
            f"{', '.join(map(str, beyond))}."
        )
        return figure

    draw(shared, factor)  # a stub is met here, and not in the middle of a widget
    lengths = [(text, value) for value, text in SHARED]
    return with_sliders(
        draw, {"factor": ("capacity factor", FACTORS, factor), "shared": ("shared direction", lengths, shared)}
    )


def _bars(axes: Axes, within: Sequence[float], beyond: Sequence[float], places: float) -> None:
    names = [str(expert) for expert in range(len(within))]
    axes.bar(names, within, color=WITHIN)
    axes.bar(names, beyond, bottom=within, color=BEYOND)
    axes.axhline(places, color="black", linestyle="--", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
