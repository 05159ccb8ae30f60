"""The staircase of lab 04: how the share of an output that is needed falls with every tile and wave that begins."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, YOURS, new_figure

TilesAndWaves = Callable[[int, int, int, int, int], tuple[int, int, float]]


def wave_staircase(tiles_and_waves: TilesAndWaves, rows: int = 2304, tile: tuple[int, int] = (256, 128)) -> Figure:
    """The efficiency of an output against its columns, on an A100 and on an H100."""
    figure, axes = new_figure(8.0, 3.2)
    widths = range(64, 4097, 8)
    for name, n_sms, color in (("A100", 108, YOURS), ("H100", 132, OTHER)):
        shares = [100 * tiles_and_waves(rows, cols, *tile, n_sms)[2] for cols in widths]
        axes.plot(widths, shares, color=color, linewidth=1.4, label=f"{name}, {n_sms} SMs")
    axes.set_ylim(0, 105)
    axes.set_xlabel(f"columns of an output with {rows} rows, in tiles of {tile[0]} x {tile[1]}")
    axes.set_ylabel("efficiency, %")
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    return figure
