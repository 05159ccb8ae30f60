"""The staircase of lab 04: how the share of an output that is needed falls with every tile and wave that begins."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, YOURS, new_figure

TilesAndWaves = Callable[[int, int, int, int, int], tuple[int, int, float]]


def wave_staircase(tiles_and_waves: TilesAndWaves, rows: int = 2304, n_sms: int = 108) -> Figure:
    """The efficiency of 2304 x n outputs on an A100 against n, for tiles of 256 x 128 and of 128 x 256."""
    figure, axes = new_figure(8.0, 3.2)
    widths = range(64, 4097, 8)
    for tile, color in (((256, 128), YOURS), ((128, 256), OTHER)):
        shares = [100 * tiles_and_waves(rows, cols, *tile, n_sms)[2] for cols in widths]
        axes.plot(widths, shares, color=color, linewidth=1.3, label=f"tiles of {tile[0]} x {tile[1]}")
    for n_waves in (1, 2):
        axes.axvline(1536 * n_waves, color="#9aa5b1", linestyle="--", linewidth=1)
        axes.annotate(f" {n_waves} full wave{'s' * (n_waves > 1)}", (1536 * n_waves, 4), color="#5f6b7a", fontsize=9)
    axes.set_ylim(0, 105)
    axes.set_xlabel(f"columns of the output ({rows} rows, {n_sms} SMs)")
    axes.set_ylabel("efficiency, %")
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    return figure
