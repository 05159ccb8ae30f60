"""The figures of lab 14's first half: an all-reduce round by round, in a strip or under a slider; bytes by rank.

All of them run the function that they are given on simulated ranks, and draw its own messages.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure
from labkit.figures.collective_trace import AllReduce, CollectiveSteps, trace_collective
from labkit.figures.cost_model import COLORS

PARTIAL, COMPLETE = "#90caf9", "#0d47a1"
OTHER_WAYS = ("#6a1b9a", "#ef8f00", "#00796b")
"""For ways that the cost model has no colour for."""
EDGE = "#9aa5b1"
COLUMN, GAP = 1.0, 0.55
"""The widths of a rank's boxes and of the space for arrows, in units of the axes."""
ROW, BOX = 1.0, 0.62
ROUNDS_IN_A_STRIP = 8


def collective_steps(all_reduce: AllReduce, n_ranks: int = 4) -> Figure:
    """Round after round from left to right: what each rank holds, and the messages in between.

    A box has a slot for each rank, filled where that rank's numbers are in the sum. all_reduce: (comm, x) -> sum. Of
    more rounds than fit on a page the first ones are drawn, which the title says.
    """
    steps = trace_collective(all_reduce, n_ranks)
    return strip(steps, range(min(steps.n_rounds, ROUNDS_IN_A_STRIP) + 1), width_in=9.4)


def collective_player(ways: Mapping[str, AllReduce], n_ranks: int = 8) -> object:
    """One round at a time, under a choice of the algorithm and a slider; without ipywidgets, the first round."""
    traced = {name: trace_collective(way, n_ranks) for name, way in ways.items()}
    if importlib.util.find_spec("ipywidgets") is None:
        return one_round(next(iter(traced.values())), 1)
    return _with_slider(traced)


def one_round(steps: CollectiveSteps, number: int) -> Figure:
    """What the ranks hold before and after round `number` (from 1 on; the last one where there are fewer)."""
    last = max(min(number, steps.n_rounds), 1)
    return strip(steps, range(last - 1, min(last, steps.n_rounds) + 1), width_in=7.6)


def bytes_by_rank(ways: Mapping[str, AllReduce], n_ranks: int = 8) -> Figure:
    """The bytes that each rank sends, in units of the tensor's, a group of bars for each way; and its rounds."""
    figure = LabFigure(figsize=(8.4, 3.4), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    for place, (name, way) in enumerate(ways.items()):
        steps = trace_collective(way, n_ranks)
        sent = [n_bytes / steps.n_bytes for n_bytes in steps.traffic.bytes_sent]
        left = place * (n_ranks + 2)
        colour = COLORS.get(name, OTHER_WAYS[place % len(OTHER_WAYS)])
        axes.bar([left + rank for rank in range(n_ranks)], sent, width=0.85, color=colour)
        middle = left + (n_ranks - 1) / 2
        total = f"{sum(sent):.3g} S together"
        axes.text(middle, max(sent) + 0.15, f"{steps.n_rounds} rounds\n{total}", ha="center", va="bottom", fontsize=9)
    middles = [place * (n_ranks + 2) + (n_ranks - 1) / 2 for place in range(len(ways))]
    axes.set_xticks(middles, list(ways), fontsize=10)
    axes.tick_params(axis="x", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis="y", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.16)
    axes.set_ylabel("bytes sent by a rank, in S")
    axes.set_title(f"one bar for each of {n_ranks} ranks, rank 0 on the left", loc="left", fontsize=10)
    return figure


def _with_slider(traced: Mapping[str, CollectiveSteps]) -> object:
    import ipywidgets
    from IPython.display import display

    choice = ipywidgets.ToggleButtons(options=list(traced))
    slider = ipywidgets.IntSlider(value=1, min=1, max=1, description="round")
    play = ipywidgets.Play(value=1, min=1, max=1, interval=900)
    ipywidgets.jslink((play, "value"), (slider, "value"))

    def fit(_: object = None) -> None:
        slider.value = play.value = 1
        slider.max = play.max = max(traced[choice.value].n_rounds, 1)

    choice.observe(fit, "value")
    fit()
    shown = ipywidgets.interactive_output(
        lambda name, number: display(one_round(traced[name], number)), {"name": choice, "number": slider}
    )
    return ipywidgets.VBox([choice, ipywidgets.HBox([play, slider]), shown])


def strip(steps: CollectiveSteps, rounds: range, width_in: float) -> LabFigure:
    """These rounds side by side; 0 is the start."""
    figure = LabFigure(
        figsize=(width_in, 0.42 * steps.n_ranks + 0.95), dpi=DPI, layout="constrained", facecolor="white"
    )
    axes = figure.add_subplot()
    digits = width_in / (len(rounds) * steps.n_chunks * steps.n_ranks) > 0.13
    for column, number in enumerate(rounds):
        left = column * (COLUMN + GAP)
        for rank in range(steps.n_ranks):
            _draw_holding(axes, steps, number, rank, left, digits)
        head = f"after {number}" if number else "start"
        axes.text(left + COLUMN / 2, 0.75, head, ha="center", fontsize=9, color=TRUTH)
        if column:
            _draw_messages(axes, steps, number, left)
    for rank in range(steps.n_ranks):
        axes.text(-0.1, -rank * ROW, f"rank {rank}", ha="right", va="center", fontsize=9)
    axes.set_xlim(-0.75, len(rounds) * (COLUMN + GAP) - GAP + 0.05)
    axes.set_ylim(-(steps.n_ranks - 0.35) * ROW, 1.05)
    axes.set_axis_off()
    cut = f" (the first {rounds[-1]} are shown)" if len(rounds) == ROUNDS_IN_A_STRIP + 1 < steps.n_rounds + 1 else ""
    axes.set_title(_summary(steps) + cut, loc="left", fontsize=10)
    return figure


def _draw_holding(axes: Axes, steps: CollectiveSteps, number: int, rank: int, left: float, digits: bool) -> None:
    """What a rank holds after a round: a box for each chunk, framed if it has just come, with a slot for each rank."""
    holding, middle = steps.states[number][rank], -rank * ROW
    come = {chunk for one in steps.messages if (one.round, one.dst) == (number, rank) for chunk in one.holds}
    room = COLUMN / steps.n_chunks
    box = room * (0.8 if steps.n_chunks > 1 else 1.0)
    for chunk in range(steps.n_chunks):
        start, ranks = left + chunk * room, holding[chunk]
        colour = COMPLETE if len(ranks) == steps.n_ranks else PARTIAL
        edge = EDGE if steps.n_chunks > 1 else "none"
        axes.add_patch(Rectangle((start, middle - BOX / 2), box, BOX, facecolor=SHADE, edgecolor=edge, linewidth=0.8))
        for one in sorted(ranks):
            slot = box / steps.n_ranks
            corner = (start + one * slot, middle - BOX / 2)
            axes.add_patch(Rectangle(corner, slot, BOX, facecolor=colour, edgecolor="none"))
            if digits:
                _write_digit(axes, one, corner[0] + slot / 2, middle, "white" if colour == COMPLETE else "black")
        if steps.n_chunks > 1 and chunk in come:
            frame = Rectangle((start, middle - BOX / 2), box, BOX, fill=False, edgecolor=OTHER, linewidth=1.2, zorder=3)
            axes.add_patch(frame)


def _write_digit(axes: Axes, rank: int, x: float, y: float, colour: str) -> None:
    axes.text(x, y, str(rank), ha="center", va="center_baseline", fontsize=7, color=colour)


def _draw_messages(axes: Axes, steps: CollectiveSteps, number: int, left: float) -> None:
    """The arrows of a round, in the space before the column at `left`; a whole tensor is a thicker one than a chunk."""
    for message in steps.messages:
        if message.round == number:
            axes.add_patch(
                FancyArrowPatch(
                    (left - GAP + 0.02, -message.src * ROW),
                    (left - 0.02, -message.dst * ROW),
                    arrowstyle="-|>",
                    mutation_scale=9,
                    shrinkA=0,
                    shrinkB=0,
                    linewidth=1.8 if message.n_bytes == steps.n_bytes else 1.0,
                    color=YOURS,
                )
            )


def _summary(steps: CollectiveSteps) -> str:
    most, together = max(steps.traffic.bytes_sent), sum(steps.traffic.bytes_sent)
    return (
        f"{steps.n_ranks} ranks, {steps.n_rounds} round{'s' * (steps.n_rounds != 1)}; a rank sends at most "
        f"{most / steps.n_bytes:.3g} S, all together {together / steps.n_bytes:.3g} S"
    )
