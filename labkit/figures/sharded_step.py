"""One step of a sharded model: what the network and the GPU do when, for one order of commands or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labkit.clock import makespan
from labkit.exercises.lab16.prefetch import GPU, NETWORK, BadOrder, Blocks, Command, gathers_when_needed, timeline
from labkit.figures.canvas import DPI, LabFigure

COLOURS = {"gather": "#E69F00", "forward": "#0072B2", "backward": "#56B4E9", "reduce": "#009E73"}
LABELS = {
    "gather": "gather a layer",
    "forward": "forward pass",
    "backward": "backward pass",
    "reduce": "reduce its gradient",
}
LANES = (NETWORK, GPU)


def sharded_step(fsdp_order: Callable[[int], Sequence[Command]] | None = None, n_layers: int = 4) -> Figure:
    """The order that gathers when needed, and below it the student's. One that is no training step is a note."""
    case = Blocks(n_layers)
    orders = {"each layer gathered when it is needed": gathers_when_needed(n_layers)}
    if fsdp_order is not None:
        orders["your order"] = list(fsdp_order(n_layers))
    size_in = (8.0, 1.35 * len(orders) + 0.75)
    figure = LabFigure(figsize=size_in, dpi=DPI, layout="constrained", facecolor="white")
    all_axes = figure.subplots(len(orders), 1, sharex=True, squeeze=False)[:, 0]
    said = []
    for axes, (title, order) in zip(all_axes, orders.items(), strict=True):
        text = _draw(axes, order, case)
        axes.set_title(f"{title}: {text}", loc="left", fontsize=10)
        said.append(f"{title}: {text}")
    all_axes[-1].set_xlabel("ms")
    handles = [Patch(color=COLOURS[kind], label=LABELS[kind]) for kind in COLOURS]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    figure.alt = f"Two rows a chart, the network above the GPU, over the time of one step of {n_layers} layers. " + (
        "; ".join(said) + "."
    )
    return figure


def _draw(axes: Axes, order: Sequence[Command], case: Blocks) -> str:
    """Draw the bars; what it comes to, in words."""
    axes.set_yticks(range(len(LANES)), [f"the {lane}" for lane in LANES], fontsize=9)
    axes.set_ylim(1.5, -0.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    try:
        spans = timeline(order, case)
    except BadOrder as error:
        return f"no step ({error})"
    for (kind, layer, _), span in spans.items():
        if kind != "free":
            left, width, row = 1e3 * span.start_s, 1e3 * (span.end_s - span.start_s), LANES.index(span.thread)
            axes.barh(row, width, left=left, height=0.74, color=COLOURS[kind], edgecolor="white", lw=0.8)
            axes.text(left + width / 2, row, str(layer), ha="center", va="center", fontsize=8, color="white")
    length_ms = 1e3 * makespan(spans)
    busy_ms = sum(case.ms_of(kind) for kind, _ in case.passes)
    return f"{length_ms:.0f} ms, the GPU works {busy_ms / length_ms:.0%} of the time"
