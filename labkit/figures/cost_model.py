"""Lab 14: what an all-reduce costs, by the student's formulas and by the student's programs on the simulated network.

Programs run on small tensors over wires that are slower by as much as the tensors are smaller, which takes the same
time; nothing here measures a real network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from torch import Tensor

from labkit.exercises.lab14.cost_model import ALGORITHMS
from labkit.exercises.lab14.hierarchical import Dealt, Nodes, filled, round_robin
from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure
from labkit.observe import known_settings
from labkit.ranks import Cluster, Comm, Wire, simulate
from labkit.ranks.traffic import Traffic

AllReduce = Callable[[Comm, Tensor], Tensor]
AllReduceTime = Callable[[str, int, int, float, float], float]

COLORS = dict(zip(ALGORITHMS, (TRUTH, "#2e7d32", OTHER, YOURS), strict=True))
ITEM_BYTES = 4
N_ELEMENTS = 960
"""A program's tensor; many numbers of ranks divide it."""


@dataclass(frozen=True)
class Net:
    """A message of k bytes takes alpha_s + k beta_s seconds; by default 10 µs and 25 GB/s."""

    alpha_s: float = 10e-6
    beta_s: float = 0.04e-9


def run_on(cluster: Cluster, n: int, n_bytes: float, all_reduce: AllReduce) -> Traffic:
    """What the program takes for tensors of n_bytes on n ranks of a cluster. Bytes are counted as they would be."""
    scale = n_bytes / (N_ELEMENTS * ITEM_BYTES)
    wires = {name: _slower(getattr(cluster, name), scale) for name in ("within", "across")}
    scaled = type(cluster)(**{**vars(cluster), **wires})
    with known_settings():
        return simulate(lambda comm: all_reduce(comm, torch.ones(N_ELEMENTS)), n, scaled)[1]


def time_against_size(
    all_reduce_time: AllReduceTime,
    programs: Mapping[str, AllReduce] | None = None,
    n: int = 8,
    net: Net = Net(),
) -> Figure:
    """Lines: the student's formulas for n ranks. Dots: the student's programs on the simulator's clock."""
    figure, axes = new_figure(7.6, 4.2)
    sizes = n * np.round(np.logspace(2, 9, 57) / n)
    for name in ALGORITHMS:
        times = [all_reduce_time(name, n, int(size), net.alpha_s, net.beta_s) for size in sizes]
        axes.plot(sizes, times, color=COLORS[name], linewidth=1.6, label=name)
    wire = Wire(net.alpha_s, 1 / net.beta_s)
    for name, program in (programs or {}).items():
        dots = sizes[::8]
        times = [run_on(Cluster(within=wire), n, size, program).seconds for size in dots]
        axes.plot(dots, times, "o", color=COLORS[name], markersize=5)
    if programs:
        axes.plot([], [], "o", color=TRUTH, markersize=5, label="your programs, simulated")
    _size_axis(axes)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(_as_time))
    axes.set_ylabel(f"time of an all-reduce on {n} ranks")
    axes.legend(frameon=False, fontsize=9)
    return figure


def cost_map(all_reduce_time: AllReduceTime, max_ranks: int = 40, net: Net = Net()) -> Figure:
    """Which algorithm takes the least time for each size and number of ranks, by the student's formulas.

    The stronger the colour, the further behind is the second best: full where that takes twice as long.
    """
    counts = range(2, max_ranks + 1)
    sizes = np.logspace(2, 9, 141)
    winner = np.zeros((len(counts), len(sizes)), dtype=int)
    lead = np.zeros((len(counts), len(sizes)))
    for row, n in enumerate(counts):
        for column, size in enumerate(sizes):
            n_bytes = n * max(1, round(size / n))
            times = [all_reduce_time(name, n, n_bytes, net.alpha_s, net.beta_s) for name in ALGORITHMS]
            best, second = sorted(times)[:2]
            winner[row, column] = times.index(best)
            lead[row, column] = min(1.0, second / best - 1) if best > 0 else 1.0
    figure, axes = new_figure(7.6, 4.4)
    palette = ListedColormap([COLORS[name] for name in ALGORITHMS])
    axes.grid(False)
    axes.pcolormesh(
        sizes,
        list(counts),
        winner,
        cmap=palette,
        vmin=-0.5,
        vmax=len(ALGORITHMS) - 0.5,
        alpha=0.25 + 0.65 * lead,
        shading="nearest",
        linewidth=0,
    )
    for index, name in enumerate(ALGORITHMS):
        if (winner == index).any():
            row, column = _middle(winner == index)
            axes.text(sizes[column], counts[row], name, ha="center", va="center", color="white", fontweight="bold")
    _size_axis(axes)
    axes.set_yticks([n for n in (2, 4, 8, 16, 32, 64, 128) if n <= max_ranks])
    axes.set_ylabel("ranks")
    return figure


@dataclass(frozen=True)
class Between:
    """What crossed between nodes: bytes that left the node from which most left, in tensors; rounds; seconds."""

    name: str
    tensors: float
    rounds: int
    seconds: float


def between_nodes(
    ring: AllReduce,
    hierarchical: Callable[[Comm, Tensor, Sequence[Sequence[int]]], Tensor],
    n_nodes: int = 4,
    per_node: int = 4,
    n_bytes: float = 100e6,
) -> list[Between]:
    """A flat ring with the ranks dealt in two ways, and the hierarchical one, on nodes of several ranks each."""

    def row(name: str, nodes: Nodes, program: AllReduce) -> Between:
        traffic = run_on(Dealt(nodes=nodes), n_nodes * per_node, n_bytes, program)
        left = max(traffic.bytes_across) / (N_ELEMENTS * ITEM_BYTES)
        return Between(name, left, traffic.rounds_across, traffic.seconds)

    one_by_one, dealt = filled(n_nodes, per_node), round_robin(n_nodes, per_node)
    return [
        row("flat ring, ranks dealt round-robin", dealt, ring),
        row("flat ring, nodes filled in order", one_by_one, ring),
        row("hierarchical", dealt, lambda comm, x: hierarchical(comm, x, [list(ranks) for ranks in dealt])),
    ]


def between_nodes_bars(rows: Sequence[Between], n_bytes: float = 100e6) -> Figure:
    """Bytes that leave a node, in tensors, and the time of one all-reduce, for each row of `between_nodes`."""
    figure = LabFigure(figsize=(8.6, 2.6), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, sharey=True)
    places = list(range(len(rows)))[::-1]
    colors = [YOURS if row.name == "hierarchical" else OTHER for row in rows]
    left.barh(places, [row.tensors for row in rows], color=colors, height=0.6)
    right.barh(places, [1e3 * row.seconds for row in rows], color=colors, height=0.6)
    left.set_yticks(places, [row.name for row in rows])
    for place, row in zip(places, rows, strict=True):
        for axes, width, text in (
            (left, row.tensors, f"{row.tensors:.2f}, {row.rounds} rounds"),
            (right, 1e3 * row.seconds, f"{1e3 * row.seconds:.1f} ms"),
        ):
            axes.annotate(text, (width, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    left.set_xlabel("leaves a node, in S, and rounds between nodes")
    right.set_xlabel(f"time for S = {n_bytes / 1e6:.0f} MB (ms)")
    # Room for the texts at the ends of the bars.
    left.set_xlim(0, 1.75 * max(row.tensors for row in rows))
    right.set_xlim(0, 1.45e3 * max(row.seconds for row in rows))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, axis="x", color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure


def _slower(wire: Wire, scale: float) -> Wire:
    return Wire(wire.alpha_s, wire.bytes_per_s / scale)


def _middle(mask: np.ndarray) -> tuple[int, int]:
    """The cell of a region that is nearest to its middle."""
    rows, columns = np.nonzero(mask)
    off = (rows / mask.shape[0] - rows.mean() / mask.shape[0]) ** 2
    off = off + (columns / mask.shape[1] - columns.mean() / mask.shape[1]) ** 2
    return int(rows[off.argmin()]), int(columns[off.argmin()])


def _size_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(_as_size))
    axes.set_xlabel("S, the bytes of the tensor")


def _as_size(n_bytes: float, position: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:g} {name}"
    return f"{n_bytes:g} B"


def _as_time(seconds: float, position: int) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:g} {name}"
    return f"{seconds * 1e6:g} µs"
