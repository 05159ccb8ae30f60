"""Pipeline schedules as charts: what each rank runs when, the bubble as an area, and what is kept alive underneath."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.exercises.lab18.interleaved import Looped, run_looped
from labkit.exercises.lab18.orders import Pipe, run_of
from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure, ink_like, new_figure
from labkit.figures.lanes import COMPUTE, COMPUTE_BACK, COMPUTE_LATE, KEPT, Bar, add_legend, draw_bar, draw_kept
from labkit.figures.sliders import with_sliders
from labkit.pipeline import Action, Costs, Event, ScheduleRun, run_schedule

COLOURS = {"F": COMPUTE, "B": COMPUTE_BACK, "I": COMPUTE_BACK, "W": COMPUTE_LATE}
LABELS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
BUBBLE = "#d3d8de"
ROW_IN, WIDTH_IN = 0.62, 9.4
BAR, STRIP = 0.52, 0.34
"""How high a row's bars are, and the strip of what it keeps under them, as parts of the row."""
Order = Callable[[int, int, int], object]


def pipeline_chart(
    run: ScheduleRun, title: str = "", names: str = "stage", until: float | None = None, of_whole: int = 1
) -> LabFigure:
    """A row for each rank: its passes with their micro-batches, grey where it waits, and below what it keeps alive.

    names: what a row is called. until: the length of the time axis, for charts that are compared. of_whole: how many
    activations of chunks count as one.
    """
    until = until or run.makespan
    figure = LabFigure(
        figsize=(WIDTH_IN, ROW_IN * run.n_ranks + 1.25), dpi=DPI, layout="constrained", facecolor="white"
    )
    axes = figure.add_subplot()
    most = max(run.peak_live, default=0) or 1
    for rank in range(run.n_ranks):
        _draw_rank(axes, run, rank, until, most, of_whole)
    axes.set_yticks([rank + BAR / 2 for rank in range(run.n_ranks)], [f"{names} {rank}" for rank in range(run.n_ranks)])
    axes.set(xlim=(0, 1.005 * until), ylim=(run.n_ranks - 0.06, -0.08), xlabel="units of time")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    idle = sum(run.idle)
    summary = (
        f"{run.makespan:.4g} units of time; bubble {idle:.4g} of {run.n_ranks * run.makespan:.4g}: {run.bubble:.1%} of "
        f"the whole, {run.bubble_of_ideal:.1%} of the ideal"
    )
    axes.set_title(f"{title}: {summary}".removeprefix(": "), loc="left", fontsize=10)
    _legend(figure, run)
    figure.alt = f"{summary}. Kept alive at most, {names} by {names}: {_listed(run.peak_live, of_whole)}."
    return figure


def _draw_rank(axes: Axes, run: ScheduleRun, rank: int, until: float, most: int, of_whole: int) -> None:
    events = run.by_rank[rank]
    axes.add_patch(Rectangle((0, rank), run.makespan, BAR, facecolor=BUBBLE, edgecolor="none"))
    stages = sorted({event.action.stage for event in events})
    digits = len(str(max((event.action.microbatch for event in run.events), default=0)))
    for event in events:
        # A digit needs about 0.08 inches, and a little air; a row has the numbers of all its passes of a kind, or none.
        has_room = (event.end - event.start) / until * (WIDTH_IN - 1.6) > 0.08 * digits + 0.04
        _draw_pass(axes, event, stages.index(event.action.stage), has_room)
    bottom = rank + BAR + STRIP + 0.02
    draw_kept(axes, run.live(rank), run.makespan, bottom, STRIP, most)
    axes.annotate(
        f"keeps {run.peak_live[rank] / of_whole:g}",
        (1.0, bottom - STRIP / 2),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=ink_like(KEPT),
        annotation_clip=False,
    )


def _draw_pass(axes: Axes, event: Event, chunk: int, has_room: bool) -> None:
    """The passes of a rank's second, fourth, ... stage have a white line."""
    action = event.action
    bar = Bar(event.rank, event.start, event.end, COLOURS[action.kind], str(action.microbatch))
    draw_bar(axes, bar, event.rank + BAR / 2, BAR, has_room, band=chunk % 2 == 1)


def _legend(figure: Figure, run: ScheduleRun) -> None:
    kinds = {event.action.kind for event in run.events}
    legend = {LABELS[kind]: COLOURS[kind] for kind in COLOURS if kind in kinds}
    add_legend(figure, legend | {"waits (the bubble)": BUBBLE, "activations kept alive": KEPT})


def pipeline_sketch(n_ranks: int = 2, n_microbatches: int = 3, n_chunks: int = 1) -> LabFigure:
    """Micro-batches that go forward through all chunks and then back: how passes wait for one another, and no more."""
    forward = [(chunk, i) for chunk in range(n_chunks) for i in range(n_microbatches)]
    orders = [
        [Action("F", chunk * n_ranks + rank, i) for chunk, i in forward]
        + [Action("B", (n_chunks - 1 - chunk) * n_ranks + rank, i) for chunk, i in forward]
        for rank in range(n_ranks)
    ]
    run = run_schedule(orders, Costs.equal(n_chunks * n_ranks, 1 / n_chunks, 2 / n_chunks))
    return pipeline_chart(run, names="rank" if n_chunks > 1 else "stage", of_whole=n_chunks)


def pipeline_player(order: Order, n_stages: int = 4, n_microbatches: int = 8) -> object:
    """A student's order(stage, n_stages, n_microbatches) as a chart, with sliders over both numbers."""
    run_of(order, Pipe(n_stages, n_microbatches))  # a stub is met here, and not in the middle of a widget

    def draw(n_stages: int, n_microbatches: int) -> Figure:
        return pipeline_chart(run_of(order, Pipe(n_stages, n_microbatches)), order.__name__)

    return with_sliders(
        draw,
        {
            "n_microbatches": ("micro-batches", (1, 2, 4, 8, 12, 16, 24, 32), n_microbatches),
            "n_stages": ("stages", (1, 2, 3, 4, 6, 8), n_stages),
        },
    )


def interleaved_player(order: Callable[[int, int, int, int], object], n_microbatches: int = 8) -> object:
    """A student's order(rank, n_ranks, n_chunks, n_microbatches) as a chart; however many chunks, the model is the
    same. A slider over the chunks of a rank and one over the ranks."""
    run_looped(order, Looped(2, 1, n_microbatches))  # a stub is met here, and not in the middle of a widget

    def draw(n_chunks: int, n_ranks: int) -> Figure:
        case = Looped(n_ranks, n_chunks, n_microbatches, 1 / n_chunks, 2 / n_chunks)
        name = f"{order.__name__}, {n_chunks} " + ("chunks" if n_chunks > 1 else "chunk")
        return pipeline_chart(run_looped(order, case), name, names="rank", of_whole=n_chunks)

    return with_sliders(draw, {"n_chunks": ("chunks", (1, 2, 3, 4), 2), "n_ranks": ("ranks", (1, 2, 4, 8), 4)})


def pipeline_memory(runs: Mapping[str, ScheduleRun], names: str = "stage") -> LabFigure:
    """The most activations that each rank keeps alive, a bar for each schedule. Raises ValueError without any."""
    if not runs:
        raise ValueError("there is nothing to draw: give at least one schedule")
    figure, axes = new_figure(7.4, 3.2)
    width = 0.8 / len(runs)
    for place, ((name, run), colour) in enumerate(zip(runs.items(), (OTHER, YOURS, TRUTH, SHADE))):
        left = [rank - 0.4 + width * (place + 0.5) for rank in range(run.n_ranks)]
        bars = axes.bar(left, run.peak_live, width=0.92 * width, color=colour, label=f"{name}: {run.makespan:g} units")
        axes.bar_label(bars, fontsize=9, color=TRUTH)
    n_ranks = max(run.n_ranks for run in runs.values())
    axes.set_xticks(range(n_ranks), [f"{names} {rank}" for rank in range(n_ranks)])
    axes.grid(False, axis="x")
    axes.margins(y=0.15)
    axes.set_title("activations kept alive at the peak, micro-batches", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.alt = "Kept alive at most: " + "; ".join(
        f"{name} {_listed(run.peak_live)} in {run.makespan:g} units of time" for name, run in runs.items()
    )
    return figure


def _listed(counts: Sequence[int], of_whole: int = 1) -> str:
    return ", ".join(f"{count / of_whole:g}" for count in counts)
