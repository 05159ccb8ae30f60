"""Lab 16: a layer's weight and gradient through a step on several ranks, and what a rank holds from layer to layer.

The first is drawn from the rule in the text; the second from what was measured on the student's own function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure, new_figure
from labkit.figures.lanes import COMPUTE, COMPUTE_BACK, TRANSFER, TRANSFER_BACK, Bar, Panel, timeline
from labkit.material.lab16_timeline import UnitSpans

WEIGHT, GRADIENT, PARTIAL = "#0072B2", "#E69F00", "#F5D58A"
STAGES = (
    ("shard", "own", ""),
    ("all-gather", "whole", ""),
    ("forward", "whole", ""),
    ("free", "own", ""),
    ("other layers", "own", ""),
    ("all-gather", "whole", ""),
    ("backward", "whole", "partial"),
    ("reduce-scatter", "own", "own"),
    ("update", "own", ""),
)
"""What happens, and what a rank then has of the weight and of the gradient."""


def layer_through_time(n_ranks: int = 4) -> Figure:
    """One layer on n_ranks ranks: what each of them holds of its weight and gradient, from shard to whole and back."""
    figure = LabFigure(figsize=(9.4, 0.62 * n_ranks + 0.9), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    for column, (name, weight, gradient) in enumerate(STAGES):
        axes.text(column + 0.42, 0.62, name, ha="center", fontsize=9, color=TRUTH)
        for rank in range(n_ranks):
            _held_parts(axes, column, -rank + 0.02, weight, WEIGHT, rank, n_ranks)
            _held_parts(axes, column, -rank - 0.38, gradient, GRADIENT, rank, n_ranks)
    for rank in range(n_ranks):
        axes.text(-0.15, -rank, f"rank {rank}", ha="right", va="center", fontsize=9)
    axes.set(xlim=(-0.8, len(STAGES)), ylim=(-n_ranks + 0.45, 0.9))
    axes.axis("off")
    figure.alt = (
        f"One layer on {n_ranks} ranks, from left to right: a rank holds 1/{n_ranks} of the weight, all of it for the "
        f"forward pass, 1/{n_ranks} again, all of it and its own whole gradient for the backward pass, and then "
        f"1/{n_ranks} of both."
    )
    return figure


def _held_parts(axes, column: int, bottom: float, held: str, colour: str, rank: int, n: int) -> None:
    """A row of n boxes, those that the rank holds filled; a gradient of its own rows alone is paler."""
    if not held:
        return
    for part in range(n):
        there = held in ("whole", "partial") or part == rank
        face = (PARTIAL if held == "partial" else colour) if there else SHADE
        corner = (column + 0.84 * part / n, bottom)
        axes.add_patch(Rectangle(corner, 0.84 / n, 0.32, facecolor=face, edgecolor="white", linewidth=0.8))


def held_through_layers(held: Mapping[str, Sequence[int]]) -> Figure:
    """MB that a rank holds after each layer, forward and back, a line for each way. Raises ValueError without any."""
    if not held:
        raise ValueError("there is nothing to draw: give at least one way")
    figure, axes = new_figure(8.0, 3.4)
    n_layers = 0
    for (name, n_bytes), colour in zip(held.items(), (YOURS, OTHER)):
        n_layers = len(n_bytes) // 2
        axes.plot(range(len(n_bytes)), [one / 1e6 for one in n_bytes], "o-", color=colour, markersize=4, label=name)
    names = [str(n) for n in range(1, n_layers + 1)] + [str(n) for n in range(n_layers, 0, -1)] + ["end"]
    axes.set_xticks(range(2 * n_layers + 1), names)
    axes.axvline(n_layers - 0.5, color=TRUTH, linewidth=1, linestyle="--")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("left of the dashed line: after this layer's forward pass; right: before its backward pass")
    axes.set_title("held by a rank, MB", loc="left", fontsize=10)
    figure.alt = "Held by a rank between layers at most: " + ", ".join(
        f"{name} {max(n_bytes) / 1e6:.1f} MB" for name, n_bytes in held.items()
    )
    axes.legend(frameon=False, fontsize=9)
    return figure


SPANS = {
    "forward": COMPUTE,
    "backward": COMPUTE_BACK,
    "all_gather": TRANSFER,
    "reduce_scatter": TRANSFER_BACK,
}


def fsdp_timeline(spans: UnitSpans) -> Figure:
    """One step of one rank: when it computes, when it gathers and reduces, and how many units it has whole."""
    bars = [
        Bar(row, 1e3 * start_s, 1e3 * end_s, SPANS.get(what, OTHER))
        for row, some in enumerate((spans.compute, spans.network))
        for what, start_s, end_s in some
    ]
    computing_s = sum(end_s - start_s for _, start_s, end_s in spans.compute)
    title = f"{1e3 * spans.step_s:.0f} ms, of which the rank computes {1e3 * computing_s:.0f} ms"
    others = {what: OTHER for what, *_ in spans.network if what not in SPANS}
    legend = {name.replace("_", "-"): colour for name, colour in {**SPANS, **others}.items()}
    whole = [(1e3 * time_s, n) for time_s, n in spans.whole]
    most = max((n for _, n in whole), default=0)
    panel = Panel(title, ("compute", "network"), bars, kept=whole, kept_name=f"whole units, ≤ {most}")
    figure = timeline([panel], legend, "milliseconds on the virtual clock", 8.6)
    figure.alt = f"{title}. At most {most} of the units are whole at the same time."
    return figure
