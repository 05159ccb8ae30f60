"""The roofline figure: operators of this machine, measured, under the roof that the student's functions draw.

It also shows, for one model layer, how differently FLOPs and time are shared out. Measuring is `machine`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.figures.machine import MachinePeaks, Measured, measure_machine, measure_operators

OperatorCost = Callable[[str, int, int, int, int], tuple[float, float]]
LeastTime = Callable[[float, float, float, float], tuple[float, str]]

MARKERS = {
    "add": ("o", "addition"),
    "softmax": ("s", "softmax"),
    "layernorm": ("D", "layer norm"),
    "linear": ("^", "linear, with its rows"),
}


def roofline(
    operator_cost: OperatorCost,
    least_time: LeastTime,
    machine: MachinePeaks | None = None,
    measured: Sequence[Measured] | None = None,
) -> Figure:
    """Achieved rate against arithmetic intensity, both axes logarithmic; the roof in blue, the threshold dashed.

    operator_cost: (operator, rows, cols, n_out, itemsize) -> (FLOPs, bytes).
    least_time: (FLOPs, bytes, FLOP/s, bytes/s) -> (seconds, bound).
    machine, measured: peak rates and timed operators; measured here and now where they are not given.
    """
    machine = machine or measure_machine()
    measured = measure_operators() if measured is None else measured
    figure, axes = new_figure(8.0, 4.6)
    points = [(run, *operator_cost(*run.arguments)) for run in measured]
    threshold = machine.peak_flops / machine.bandwidth
    intensities = [flops / n_bytes for _, flops, n_bytes in points] + [threshold]
    _roof(axes, least_time, machine, min(intensities) / 2, max(intensities) * 4)
    axes.axvline(threshold, color=TRUTH, linewidth=1, linestyle="--")
    axes.text(
        threshold,
        0.03,
        f" threshold {threshold:.3g} FLOP/B",
        transform=axes.get_xaxis_transform(),
        color=TRUTH,
        fontsize=9,
    )
    named = set()
    for run, flops, n_bytes in points:
        marker, name = MARKERS[run.arguments[0]]
        label = None if name in named else name
        named.add(name)
        place = flops / n_bytes, flops / run.seconds
        axes.plot(*place, marker, color=OTHER, markersize=7, label=label, mec="white")
        if run.arguments[0] == "linear":
            below = {"xytext": (0, -15), "textcoords": "offset points", "ha": "center"}
            axes.annotate(f"{run.arguments[1]}", place, **below, color=OTHER, fontsize=9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arithmetic intensity, FLOP per byte")
    axes.set_ylabel("rate, FLOP/s")
    title = f"{machine.name}: {machine.peak_flops / 1e9:,.0f} GFLOP/s, {machine.bandwidth / 1e9:,.0f} GB/s"
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(loc="upper left", frameon=False)
    return figure


def _roof(axes: Axes, least_time: LeastTime, machine: MachinePeaks, low: float, high: float) -> None:
    intensities = np.geomspace(low, high, 200)
    n_bytes = 1e6
    rates = [
        x * n_bytes / least_time(x * n_bytes, n_bytes, machine.peak_flops, machine.bandwidth)[0] for x in intensities
    ]
    axes.plot(intensities, rates, color=YOURS, linewidth=2.2)
    axes.fill_between(intensities, rates, min(rates) / 30, color=YOURS, alpha=0.06)
    axes.set_ylim(min(rates) / 30, max(rates) * 3)


def flops_against_time(shares: Mapping[str, tuple[float, float, float]]) -> Figure:
    """For each class of operators three bars: its share of the FLOPs, of the least time, of a published run time.

    shares: class -> (FLOPs, least time, published run time), each as a fraction of the whole.
    """
    figure, axes = new_figure(8.0, 3.4)
    labels = ("share of the FLOPs", "share of the least time, yours", "share of the time measured on a V100")
    for i, (label, color) in enumerate(zip(labels, (TRUTH, YOURS, OTHER), strict=True)):
        places = [row + 0.27 * (i - 1) for row in range(len(shares))]
        values = [100 * share[i] for share in shares.values()]
        axes.barh(places, values, height=0.24, color=color, label=label)
        for place, value in zip(places, values, strict=True):
            axes.text(value + 0.8, place, f"{value:.1f} %" if value >= 1 else f"{value:.2f} %", va="center", fontsize=9)
    axes.set_yticks(range(len(shares)), list(shares))
    axes.invert_yaxis()
    axes.set_xlim(0, 112)
    axes.set_xlabel("%")
    axes.grid(False, axis="y")
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    return figure
