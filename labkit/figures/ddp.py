"""Figures of data parallel training: what overlaps in one step, and what that makes of many ranks. Timed elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from matplotlib.figure import Figure

from labkit.exercises.lab15.ddp import Job
from labkit.figures.canvas import DPI, TRUTH, LabFigure, new_figure
from labkit.figures.lanes import COMPUTE, TRANSFER, Bar, Panel, timeline
from labkit.figures.sliders import with_sliders
from labkit.material.lab15 import Timeline, scaling_of
from labkit.material.lab15 import timeline as timed_step

# Okabe and Ito's colours, told apart by every kind of colour vision, and a marker each.
STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "v"))


def ddp_timeline(steps: Mapping[str, Timeline]) -> Figure:
    """One panel for each step, on a common time axis: the blocks' backward passes above, the all-reduces below.

    steps: by title. Raises ValueError where there is none.
    """
    if not steps:
        raise ValueError("there is nothing to draw: give at least one step")
    panels = []
    for title, step in steps.items():
        bars = [Bar(0, 1e3 * start_s, 1e3 * end_s, COMPUTE) for start_s, end_s in step.backward]
        bars += [Bar(1, 1e3 * start_s, 1e3 * end_s, TRANSFER) for start_s, end_s, _ in step.reduces]
        n_calls = len(step.reduces)
        calls = f"{n_calls} call" + "s" * (n_calls != 1)
        title = f"{title}: {calls}, {1e3 * step.step_s:.0f} ms"
        panels.append(Panel(title, ("backward", "network"), bars, mark=1e3 * step.backward_s))
    legend = {"backward pass of a block": COMPUTE, "all-reduce": TRANSFER}
    xlabel = "milliseconds on the virtual clock (dashed: the backward pass alone)"
    return timeline(panels, legend, xlabel, end=1e3 * max(step.step_s for step in steps.values()))


def ddp_player(ddp_class: Callable[..., Any], train_step: Callable[..., Any], job: Job) -> object:
    """A step of the student's class under sliders over the cap of a bucket and the latency of a message."""

    @cache
    def step(cap_blocks: float, latency_ms: float) -> Timeline:
        return timed_step(ddp_class, train_step, replace(job, cap_blocks=cap_blocks), latency_ms / 1e3)

    caps = [("a parameter", 0.01), *((f"{n:g} blocks" if n > 1 else "a block", n) for n in (1, 2, 3, 4, 6))]
    sliders = {
        "cap_blocks": ("a bucket for", [*caps, ("everything", 100)], 1),
        "latency_ms": ("latency of a message, ms", (0.1, 0.3, 1.0, 3.0), 1.0),
    }
    step(cap_blocks=1, latency_ms=1.0)  # a stub is met here, and not in the middle of a widget
    return with_sliders(lambda **values: ddp_timeline({"yours": step(**values)}), sliders)


def ddp_scaling(ddp_class: Callable[..., Any], train_step: Callable[..., Any], job: Job) -> Figure:
    """`scaling_figure` of the student's class, with the caps and ranks of `labkit.material.lab15.scaling_of`."""
    by_cap, by_ranks = scaling_of(ddp_class, train_step, job)
    return scaling_figure(by_cap, job.backward_s, by_ranks)


def scaling_figure(
    by_cap: Mapping[float, float], backward_s: float, by_ranks: Mapping[str, Mapping[int, float]]
) -> Figure:
    """Left: a step's time against the cap. Right: how many times the work of one rank n ranks get done.

    by_cap: cap in blocks -> seconds of a step. backward_s: of such a step without any communication.
    by_ranks: name -> number of ranks -> seconds of a step; what one rank takes is what the others are compared with.
    """
    figure = LabFigure(figsize=(8.0, 3.9), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    caps = sorted(by_cap)
    left.plot(caps, [1e3 * by_cap[cap] for cap in caps], color=COMPUTE, marker="o", markersize=4.5, linewidth=1.4)
    left.axhline(1e3 * backward_s, color=TRUTH, linewidth=1, linestyle="--", label="the backward pass alone")
    left.set_xscale("log")
    left.set_xticks(caps, [f"{cap:g}" for cap in caps])
    left.minorticks_off()
    left.set_ylim(850 * backward_s, 1050 * max(by_cap.values()))
    left.set_xlabel("cap of a bucket, in blocks")
    left.set_title("one step, milliseconds", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=9, loc="upper center")
    most = max(n for times in by_ranks.values() for n in times)
    right.plot([1, most], [1, most], color=TRUTH, linewidth=1, linestyle="--", label="as many times as ranks")
    for (name, times), (colour, marker) in zip(by_ranks.items(), STYLES):
        ranks = sorted(times)
        speedups = [n * times[ranks[0]] / times[n] for n in ranks]
        right.plot(ranks, speedups, color=colour, marker=marker, markersize=4.5, linewidth=1.4, label=name)
    right.set_xlabel("ranks, each with as many rows as one has alone")
    right.set_title("work done, one rank = 1", loc="left", fontsize=10)
    right.set_xticks(sorted({n for times in by_ranks.values() for n in times}))
    right.legend(frameon=False, fontsize=9, loc="upper left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure


def normalization_error(by_rows: Mapping[str, Mapping[int, float]]) -> Figure:
    """How far normalized rows lie from those of the whole batch, against the rows that one rank has.

    by_rows: name -> rows a rank -> root mean square of the difference, in standard deviations.
    """
    figure, axes = new_figure(7.0, 3.4)
    for (name, errors), (colour, marker) in zip(by_rows.items(), STYLES):
        rows = sorted(errors)
        axes.plot(
            rows, [errors[n] for n in rows], color=colour, marker=marker, markersize=4.5, linewidth=1.4, label=name
        )
    ticks = sorted({n for errors in by_rows.values() for n in errors})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.set_xlabel("rows a rank")
    axes.set_ylabel("standard deviations")
    axes.set_title("distance from what the whole batch gives", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return figure
