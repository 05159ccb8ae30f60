"""The figures of tiles: products under a roof by their tile, what an order of tiles reads, and a softmax on its way.

They show what the student's functions return and what was counted; nothing is launched here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure
from labkit.meters.traffic import TrafficProfile
from labkit.meters.traffic.cache import Tile, product_read_bytes
from labkit.units import in_bytes

TileOf = Callable[[int, int, int, int], Tile]
"""(number of the program, rows of tiles, columns of tiles, rows in a group) -> tile."""
Stats = Callable[[Iterable[Tensor]], tuple[Tensor, Tensor]]
"""Blocks of columns -> (maximum, sum of exponentials) of each row."""


def tile_roofline(traffic: Mapping[int, TrafficProfile], flops: float, peak_flops: float, bandwidth: float) -> Figure:
    """The rate that the memory allows a product, by the tile of its kernel, under the roof of a GPU.

    traffic: tile -> what was counted for a product of so many FLOPs. peak_flops in FLOP/s, bandwidth in bytes/s.
    """
    intensities = {tile: flops / one.total_bytes for tile, one in traffic.items()}
    bend = peak_flops / bandwidth
    low, high = min([*intensities.values(), bend]) / 6, max([*intensities.values(), bend]) * 2
    figure, axes = new_figure(8.0, 3.8)
    roof = [rate / 1e12 for rate in (low * bandwidth, peak_flops, peak_flops)]
    axes.plot([low, bend, high], roof, color=TRUTH, linewidth=2)
    axes.axvline(bend, color=TRUTH, linewidth=1, linestyle="--")
    axes.text(bend, 0.03, f" {bend:.0f} FLOP/B", transform=axes.get_xaxis_transform(), color=TRUTH, fontsize=9)
    for tile, intensity in intensities.items():
        place = intensity, min(peak_flops, intensity * bandwidth) / 1e12
        axes.plot(*place, "o", color=YOURS, markersize=8, mec="white")
        text = f"tile {tile}: {intensity:.1f} FLOP/B, {place[1]:.3g} TFLOP/s"
        axes.annotate(text, place, (-10, 4), textcoords="offset points", fontsize=9, ha="right")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_xlim(low, high)
    axes.set_xlabel("FLOP per byte that was counted")
    axes.set_ylabel("TFLOP/s that the memory allows")
    axes.set_title(f"roof: {peak_flops / 1e12:,.0f} TFLOP/s, {bandwidth / 1e9:,.0f} GB/s", loc="left", fontsize=10)
    return figure


def row_by_row(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> Tile:
    """The order that the number of a program suggests."""
    return divmod(pid, n_tiles_n)


def tile_order(tile_of: TileOf, n_tiles_m: int, n_tiles_n: int, group: int, at_once: int, wave: int = 1) -> Figure:
    """Which tiles run at the same time, and which strips of A and B they need: row by row, and in the student's order.

    wave: which set of `at_once` programs is drawn, from 0 on. The paler a tile, the later it starts.
    """
    figure, axes = new_figure(8.4, 4.4)
    axes.remove()
    for place, (name, order) in enumerate((("row by row", row_by_row), ("your order", tile_of))):
        tiles = [order(pid, n_tiles_m, n_tiles_n, group) for pid in range(n_tiles_m * n_tiles_n)]
        panel = figure.add_subplot(1, 2, place + 1)
        running = tiles[wave * at_once : (wave + 1) * at_once]
        _map(panel, tiles, running, n_tiles_m, n_tiles_n, YOURS if place else OTHER)
        rows, cols = ({tile[axis] for tile in running} for axis in (0, 1))
        strips = len(rows) + len(cols)
        panel.set_title(f"{name}: {len(rows)} + {len(cols)} = {strips} strips", loc="left", fontsize=10)
    figure.suptitle(f"programs {wave * at_once} to {(wave + 1) * at_once - 1}, which run together", fontsize=10)
    return figure


def _map(
    axes: Axes, tiles: Sequence[Tile], running: Sequence[Tile], n_tiles_m: int, n_tiles_n: int, color: str
) -> None:
    """The result as a grid of tiles, A's strips at its left and B's above it."""
    for number, (row, col) in enumerate(tiles):
        grey = 0.80 + 0.17 * number / len(tiles)
        axes.add_patch(Rectangle((col, row), 1, 1, facecolor=(grey, grey, grey), edgecolor="white"))
    for row, col in running:
        axes.add_patch(Rectangle((col, row), 1, 1, facecolor=color, edgecolor="white"))
        axes.add_patch(Rectangle((-2.5, row), 2, 1, facecolor=color, edgecolor="white", alpha=0.6))
        axes.add_patch(Rectangle((col, -2.5), 1, 2, facecolor=color, edgecolor="white", alpha=0.6))
    axes.add_patch(Rectangle((-2.5, 0), 2, n_tiles_m, fill=False, edgecolor=TRUTH))
    axes.add_patch(Rectangle((0, -2.5), n_tiles_n, 2, fill=False, edgecolor=TRUTH))
    axes.text(-2.8, n_tiles_m / 2, "A", ha="right", va="center")
    axes.text(n_tiles_n / 2, -2.8, "B", ha="center", va="bottom")
    axes.set_xlim(-4, n_tiles_n + 0.2)
    axes.set_ylim(n_tiles_m + 0.2, -4)
    axes.set_aspect("equal")
    axes.set_axis_off()


def cache_curve(
    tile_of: TileOf,
    n_tiles_m: int,
    n_tiles_n: int,
    group: int,
    at_once: int,
    n_steps: int,
    block_bytes: int,
    cache_bytes: float,
) -> Figure:
    """What a product reads from memory, against the size of the cache: row by row, and in the student's order.

    Dashed: each block of A and B once. Dotted: the cache of a chip, cache_bytes.
    """
    n_programs, n_blocks = n_tiles_m * n_tiles_n, n_steps * (n_tiles_m + n_tiles_n)
    sizes = sorted({math.ceil(n_blocks * 2 ** (step / 3 - 7)) for step in range(23)})
    figure, axes = new_figure(8.0, 3.6)
    for name, order, color in (("row by row", row_by_row, OTHER), ("your order", tile_of, YOURS)):
        tiles = [order(pid, n_tiles_m, n_tiles_n, group) for pid in range(n_programs)]
        read = [product_read_bytes(tiles, n_steps, at_once, n_kept, block_bytes) / 2**20 for n_kept in sizes]
        axes.plot([n_kept * block_bytes / 2**20 for n_kept in sizes], read, color=color, linewidth=2, label=name)
    once = n_blocks * block_bytes
    axes.axhline(once / 2**20, color=TRUTH, linestyle="--", linewidth=1.5, label=f"each block once: {in_bytes(once)}")
    largest = sizes[-1] * block_bytes / 2**20
    axes.axvline(
        cache_bytes / 2**20, color=TRUTH, linestyle=":", label=f"cache of the chip: {cache_bytes / 1e6:.0f} MB"
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(right=largest)
    axes.set_ylim(0)
    axes.set_xlabel("size of the cache, MiB")
    axes.set_ylabel("read from memory, MiB")
    axes.legend(frameon=False, fontsize=9)
    return figure


def softmax_on_its_way(stats: Stats, row: Tensor, n_block: int) -> Figure:
    """A row (n,) with the running maximum and the running sum of exponentials after each block of n_block elements.

    stats is called on the first block, on the first two, and so on. Crosses: a sum that nobody rescales.
    """
    blocks = row[None].split(n_block, dim=1)
    found = [stats(iter(blocks[: n + 1])) for n in range(len(blocks))]
    tops, totals = ([float(one[which][0]) for one in found] for which in (0, 1))
    unscaled, sums = 0.0, []
    for block in blocks:
        unscaled += float((block - block.max()).exp().sum())
        sums.append(unscaled)
    figure, upper = new_figure(8.0, 4.6)
    upper.remove()
    upper, lower = figure.subplots(2, 1, sharex=True)
    edges = [n_block * n for n in range(len(blocks) + 1)]
    upper.plot(range(len(row)), row.tolist(), ".", color=TRUTH, markersize=3)
    upper.stairs(tops, edges, color=YOURS, linewidth=2, baseline=None, label="maximum so far")
    upper.set_ylabel("element")
    lower.stairs(totals, edges, color=YOURS, linewidth=2, baseline=None, label="sum so far, yours")
    middles = [edge + n_block / 2 for edge in edges[:-1]]
    lower.plot(middles, sums, "x", color=OTHER, label="if old sums are never rescaled")
    lower.set_ylabel("sum of exponentials")
    lower.set_xlabel("column")
    lower.set_ylim(0)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, axis="y", color=SHADE)
        for edge in edges:
            axes.axvline(edge, color=SHADE, linewidth=0.8, zorder=0)
        axes.legend(frameon=False, fontsize=9)
    return figure
