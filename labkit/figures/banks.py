"""A tile in shared memory, coloured by bank: which column of it a warp reads in one pass, by the length of its rows."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.figures.sliders import with_sliders
from labkit.simt.counters import wavefronts
from labkit.simt.lanes import WARP, Lanes, Mask

LENGTHS = tuple(range(32, 41))


def bank_player(row_length: int = 32) -> object:
    """`bank_map` under a slider for the length of a row, 32 to 40 words."""
    return with_sliders(bank_map, {"row_length": ("row length", LENGTHS, row_length)})


def column_passes(row_length: int) -> int:
    """Passes that a warp needs to read a column of 32 floats: lane i reads word i · row_length."""
    lanes = Lanes((1, 1, 1), (WARP, 1, 1), 0, 1)
    return wavefronts(4 * row_length * np.arange(WARP)[None], 4, Mask(lanes, np.ones((1, WARP), bool)))[0]


def bank_map(row_length: int = 32) -> Figure:
    """A tile of 32 x 32 floats in rows of so many words: a colour for each of the 32 banks, its number in column 0."""
    figure, axes = new_figure(6.0, 4.9)
    banks = (np.arange(WARP)[:, None] * row_length + np.arange(row_length)) % WARP
    palette = ListedColormap(colormaps["twilight"](np.linspace(0.08, 0.92, WARP)))
    axes.imshow(banks, cmap=palette, vmin=0, vmax=WARP - 1, interpolation="nearest")
    for row in range(WARP):
        light = sum(palette(int(banks[row, 0]))[:3]) > 1.7
        colour = "black" if light else "white"
        axes.text(0, row, int(banks[row, 0]), ha="center", va="center", fontsize=6, color=colour)
    passes = column_passes(row_length)
    colour = YOURS if passes == 1 else OTHER
    axes.add_patch(Rectangle((-0.5, -0.5), 1, WARP, fill=False, edgecolor=colour, linewidth=2.5))
    if row_length > WARP:
        size = row_length - WARP, WARP
        axes.add_patch(Rectangle((WARP - 0.5, -0.5), *size, facecolor="white", alpha=0.55, edgecolor=TRUTH, hatch="//"))
    axes.grid(False)
    axes.set_xlabel("column; hatched: padding")
    axes.set_ylabel("row")
    n_banks = len(set(banks[:, 0]))
    found = f"column 0 lies in {n_banks} {'bank' if n_banks == 1 else 'banks'}: {passes} " + (
        "pass" if passes == 1 else "passes"
    )
    axes.set_title(f"rows of {row_length} words. {found}", loc="left", fontsize=10, color=colour)
    figure.alt = f"A tile of 32 by 32 words in rows of {row_length}, coloured by bank. {found}."
    return figure
