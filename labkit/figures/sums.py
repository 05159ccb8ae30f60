"""The figures of lab 02's second half: errors that grow, stall and cancel, in the student's own functions."""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure

FloatSum = Callable[[torch.Tensor], torch.Tensor]
StochasticRound = Callable[[torch.Tensor, torch.Generator], torch.Tensor]

# Okabe and Ito's colours, told apart by every kind of colour vision, and a marker each.
STYLES = (("#D55E00", "o"), ("#E69F00", "^"), ("#0072B2", "s"), ("#009E73", "D"), ("#CC79A7", "v"))
N_SHOWN_WEIGHTS = 12


def error_against_n(sums: Mapping[str, FloatSum], exponents: Sequence[int] = range(4, 13), n_draws: int = 16) -> Figure:
    """Relative error of each sum of n float32 values from [0, 1), n = 2^k, with bounds dashed, sqrt(n) u dotted.

    sums: name -> function; one that is still blank is left out. The mean error of `n_draws` draws of each n is shown;
    0 is drawn at the lower edge.
    """
    u = torch.finfo(torch.float32).eps / 2
    floor = u / 16
    sizes = [2**k for k in exponents]
    figure, axes = new_figure(8.0, 4.4)
    for (name, add), (color, marker) in zip(_written(sums).items(), STYLES):
        errors = [max(floor, sum(_relative_error(add, n, seed) for seed in range(n_draws)) / n_draws) for n in sizes]
        axes.plot(sizes, errors, marker=marker, color=color, markersize=5, linewidth=1.8, label=name)
    bounds = {
        "(n − 1) u": [(n - 1) * u for n in sizes],
        "√n u": [math.sqrt(n) * u for n in sizes],
        "log₂(n) u": [math.log2(n) * u for n in sizes],
        "u": [u] * len(sizes),
    }
    for label, values in bounds.items():
        axes.plot(sizes, values, color=TRUTH, linewidth=0.9, linestyle=":" if label == "√n u" else "--")
        axes.annotate(label, (sizes[-1], values[-1]), (6, 0), textcoords="offset points", color=TRUTH, va="center")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(floor / 1.3, None)
    axes.set_xlabel("number of terms n")
    axes.set_ylabel("relative error of the sum")
    title = f"Sums in float32, mean of {n_draws} draws; dashed: bounds, dotted: roundings of random direction"
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(loc="upper left", frameon=False, ncols=2)
    return figure


def stalling_sum(naive_sum: FloatSum, value: float = 0.01, n: int = 1000, n_points: int = 100) -> Figure:
    """The naive sum of the first 1 to n copies of `value` in float32, float16 and bfloat16."""
    counts = sorted({max(1, round(n * k / n_points)) for k in range(1, n_points + 1)})
    figure, axes = new_figure(8.0, 3.8)
    # float32 and float16 end close together: their labels stand above and below.
    for dtype, (color, line), shift in (
        (torch.float32, (TRUTH, "--"), 7),
        (torch.float16, (YOURS, "-"), -7),
        (torch.bfloat16, (OTHER, "-"), 0),
    ):
        x = torch.full((n,), value, dtype=dtype)
        totals = [float(naive_sum(x[:count])) for count in counts]
        axes.plot(counts, totals, color=color, linestyle=line, linewidth=2)
        label = f"{str(dtype).removeprefix('torch.')}: {totals[-1]:.5g}"
        axes.annotate(label, (n, totals[-1]), (6, shift), textcoords="offset points", color=color, va="center")
    axes.set_xlim(0, n)
    axes.set_ylim(0, None)
    axes.set_xlabel(f"how many times {value:g} was added")
    axes.set_ylabel("running sum")
    return figure


def tiny_updates(
    stochastic_round: StochasticRound, update: float = 1e-3, n_steps: int = 500, n_weights: int = 400
) -> Figure:
    """Bfloat16 weights that start at 1 and receive `update` n_steps times, rounded by chance and to nearest.

    Left: a few weights, their mean and the exact value at each step. Right: all weights at the end.
    """
    by_chance, nearest = _trained(stochastic_round, update, n_steps, n_weights)
    figure = LabFigure(figsize=(8.0, 3.8), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    steps, exact = range(n_steps + 1), 1 + update * n_steps
    left.plot(steps, by_chance[:, :N_SHOWN_WEIGHTS], color=YOURS, linewidth=0.6, alpha=0.35)
    left.plot(steps, by_chance.mean(1), color=YOURS, linewidth=2.2)
    left.plot((0, n_steps), (1, exact), color="black", linewidth=1, linestyle="--")
    left.plot(steps, nearest, color=OTHER, linewidth=2.2)
    left.annotate(
        "to nearest",
        (n_steps, float(nearest[-1])),
        (0, 6),
        textcoords="offset points",
        color=OTHER,
        ha="right",
    )
    text = f"by chance: {N_SHOWN_WEIGHTS} weights,\nand the mean of {n_weights}\n(dashed: exact)"
    left.text(0.03, 0.97, text, transform=left.transAxes, color=YOURS, va="top")
    left.set_xlabel("updates")
    left.set_ylabel("weight")
    values, counts = by_chance[-1].unique(return_counts=True)
    right.bar(values, counts, width=0.8 * 2**-7, color=YOURS, alpha=0.6)
    right.axvline(exact, color="black", linewidth=1, linestyle="--")
    right.set_title(f"mean {by_chance[-1].mean():.4f}, exact {exact:.4f}", loc="left", fontsize=10)
    right.set_xlabel(f"weight after {n_steps} updates")
    right.set_ylabel("number of weights")
    _unboxed(left, right)
    return figure


def merging_cost(merge_smallest: Callable[[list[float]], float], exponents: Sequence[int] = range(10, 17)) -> Figure:
    """CPU time of merging n = 2^k values: the student's function beside a sorted list that is shifted at every turn."""
    sizes = [2**k for k in exponents]
    figure, axes = new_figure(8.0, 3.6)
    for name, merge, color, marker in (
        ("sorted list", _merge_in_a_list, OTHER, "o"),
        ("merge_smallest", merge_smallest, YOURS, "s"),
    ):
        times_ms = [_cpu_ms(merge, n) for n in sizes]
        axes.plot(sizes, times_ms, color=color, marker=marker, markersize=5, linewidth=1.8)
        axes.annotate(name, (sizes[-1], times_ms[-1]), (8, 0), textcoords="offset points", color=color, va="center")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("number of values n")
    axes.set_ylabel("CPU time, ms")
    return figure


def _written(sums: Mapping[str, FloatSum]) -> dict[str, FloatSum]:
    """The functions that are no stubs; where all are, the last one raises."""
    written, blank = {}, None
    for name, add in sums.items():
        try:
            add(torch.ones(1))
        except NotImplementedError as error:
            blank = error
        else:
            written[name] = add
    if blank and not written:
        raise blank
    return written


def _relative_error(add: FloatSum, n: int, seed: int) -> float:
    x = torch.rand(n, generator=torch.Generator().manual_seed(seed))
    exact = math.fsum(x.tolist())
    return abs(float(add(x)) - exact) / exact


def _trained(stochastic_round: StochasticRound, update: float, n_steps: int, n_weights: int) -> tuple:
    """The weights at every step, (n_steps + 1, n_weights) by chance and (n_steps + 1,) to nearest, in float32."""
    generator = torch.Generator().manual_seed(0)
    weights, nearest = torch.ones(n_weights, dtype=torch.bfloat16), torch.ones((), dtype=torch.bfloat16)
    paths, nearest_path = [weights.float()], [nearest.float()]
    for _ in range(n_steps):
        weights = stochastic_round(weights.float() + update, generator)
        nearest = (nearest.float() + update).to(torch.bfloat16)
        paths.append(weights.float())
        nearest_path.append(nearest.float())
    return torch.stack(paths), torch.stack(nearest_path)


def _unboxed(*all_axes: Axes) -> None:
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)


def _merge_in_a_list(values: list[float]) -> float:
    parts = sorted(values)
    while len(parts) > 1:
        bisect.insort(parts, parts.pop(0) + parts.pop(0))
    return parts[0]


def _cpu_ms(merge: Callable[[list[float]], float], n: int) -> float:
    values = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64).tolist()
    start_s = time.process_time()
    merge(values)
    return 1e3 * (time.process_time() - start_s)
