"""One step of a sharded model: what the network and the GPU do when, for one order of commands or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from labkit.clock import Span, makespan
from labkit.exercises.lab16.prefetch import GPU, NETWORK, BadOrder, Blocks, Command, gathers_when_needed
from labkit.exercises.lab16.prefetch import timeline as played
from labkit.figures.lanes import COMPUTE, COMPUTE_BACK, TRANSFER, TRANSFER_BACK, Bar, Panel, timeline
from labkit.figures.sliders import with_sliders

COLOURS = {"gather": TRANSFER, "forward": COMPUTE, "backward": COMPUTE_BACK, "reduce": TRANSFER_BACK}
LABELS = {
    "gather": "gather a layer",
    "forward": "forward pass",
    "backward": "backward pass",
    "reduce": "reduce its gradient",
}
LANES = (NETWORK, GPU)


def sharded_step(
    fsdp_order: Callable[[int], Sequence[Command]] | None = None, n_layers: int = 4, gather_ms: float = 3.0
) -> Figure:
    """The order that gathers when needed, and below it the student's. One that is no training step is a note."""
    case = Blocks(n_layers, gather_ms)
    orders = {"each layer gathered when it is needed": gathers_when_needed(n_layers)}
    if fsdp_order is not None:
        orders["your order"] = list(fsdp_order(n_layers))
    panels = [_panel(title, order, case) for title, order in orders.items()]
    figure = timeline(panels, {LABELS[kind]: colour for kind, colour in COLOURS.items()}, "ms")
    figure.alt = f"Two rows a chart, the network above the GPU, over the time of one step of {n_layers} layers. " + (
        "; ".join(panel.title for panel in panels) + "."
    )
    return figure


def sharded_step_player(fsdp_order: Callable[[int], Sequence[Command]]) -> object:
    """`sharded_step` of the student's order, with sliders over the layers and over the time that a gather takes."""
    fsdp_order(1)  # a stub is met here, and not in the middle of a widget

    def draw(n_layers: int, gather_ms: float) -> Figure:
        return sharded_step(fsdp_order, n_layers, gather_ms)

    sliders = {
        "gather_ms": ("gathering a layer, ms", (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0), 3.0),
        "n_layers": ("layers", (1, 2, 4, 6, 8), 4),
    }
    return with_sliders(draw, sliders)


def _panel(title: str, order: Sequence[Command], case: Blocks) -> Panel:
    """The bars, what they come to, and below them how many layers are whole."""
    lanes = [f"the {lane}" for lane in LANES]
    try:
        spans = played(order, case)
    except BadOrder as error:
        return Panel(f"{title}: no step ({error})", lanes)
    bars = [
        Bar(LANES.index(span.thread), 1e3 * span.start_s, 1e3 * span.end_s, COLOURS[kind], str(layer))
        for (kind, layer, _), span in spans.items()
        if kind != "free"
    ]
    length_ms = 1e3 * makespan(spans)
    busy_ms = sum(case.ms_of(kind) for kind, _ in case.passes)
    whole = _whole(order, spans)
    n_whole = max(n for _, n in whole)
    summary = f"{length_ms:.0f} ms, the GPU works {busy_ms / length_ms:.0%} of the time"
    return Panel(f"{title}: {summary}", lanes, bars, kept=whole, kept_name=f"whole layers, ≤ {n_whole}")


def _whole(order: Sequence[Command], spans: Mapping[Any, Span]) -> list[tuple[float, int]]:
    """(ms, layers that are whole from then on): one more when a gather begins, one less when a layer is freed, which
    is when its last pass has ended."""
    changes: list[tuple[float, int]] = []
    used_s: dict[int, float] = {}
    for place, (kind, layer) in enumerate(order):
        if kind == "free":
            changes.append((1e3 * used_s[layer], -1))
            continue
        span = spans[kind, layer, place]
        if kind == "gather":
            changes.append((1e3 * span.start_s, 1))
        if kind != "reduce":
            used_s[layer] = span.end_s
    steps, now = [(0.0, 0)], 0
    for time, change in sorted(changes):
        now += change
        steps.append((time, now))
    return steps
