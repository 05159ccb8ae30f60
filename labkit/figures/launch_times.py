"""Lab 11: the time of a step against the time of a launch, kernel by kernel and as one graph."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure


def launch_times(measured_us: Mapping[float, tuple[float, float]], pays_from_us: float) -> Figure:
    """measured_us: by launch time in microseconds, the step's, eager and graphed. pays_from_us: the student's limit."""
    figure, axes = new_figure(7.4, 3.4)
    launches_us = sorted(measured_us)
    eager, graphed = zip(*(measured_us[one] for one in launches_us), strict=True)
    axes.plot(launches_us, eager, color=OTHER, marker="o", markersize=4, label="kernel by kernel")
    axes.plot(launches_us, graphed, color=YOURS, marker="o", markersize=4, label="your graph")
    axes.axvline(pays_from_us, color=TRUTH, linestyle="--", linewidth=1)
    axes.set_title(f"the graph pays from {pays_from_us:.2f} µs on (dashed, your formula)", loc="left", fontsize=10)
    axes.set_xlabel("time of one launch, µs")
    axes.set_ylabel("time of a step, µs")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    return figure
