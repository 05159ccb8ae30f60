"""A grid of blocks over a matrix: which thread has which element, and which threads have none.

Drawn by geometry, before the student writes a kernel: nothing is launched here.
"""

from __future__ import annotations

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.simt.lanes import WARP

_BLOCKS = ("#dbe7f5", "#eef3fa")
_IDLE = "#f6d5d5"


def thread_grid(rows: int = 11, cols: int = 40, block: tuple[int, int] = (16, 4)) -> Figure:
    """The threads of a launch over a matrix, as squares: blocks in two shades, one warp in blue, idle threads in red.

    block: threads along x and y. The grid has as many blocks as it takes to cover the matrix.
    """
    n_x, n_y = -(-cols // block[0]), -(-rows // block[1])
    y, x = np.mgrid[: n_y * block[1], : n_x * block[0]]
    shade = (x // block[0] + y // block[1]) % 2
    shade[(x >= cols) | (y >= rows)] = 2
    in_block = (y % block[1]) * block[0] + x % block[0]
    shade[(x // block[0] == n_x // 2) & (y // block[1] == n_y // 2) & (in_block < WARP) & (shade < 2)] = 3
    figure, axes = new_figure(8.4, 1.0 + 0.15 * n_y * block[1])
    axes.imshow(shade, cmap=ListedColormap([*_BLOCKS, _IDLE, YOURS]), vmin=0, vmax=3, aspect="equal")
    for axis, n_threads in zip((axes.xaxis, axes.yaxis), shade.shape[::-1], strict=True):
        # The middle of a block may be a line between two threads, which a label would take away.
        axis.remove_overlapping_locs = False
        axis.set_ticks(np.arange(-0.5, n_threads), minor=True)
    axes.grid(False)
    axes.grid(True, which="minor", color="white", linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks([block[0] * (i + 0.5) - 0.5 for i in range(n_x)], [f"blockIdx.x = {i}" for i in range(n_x)])
    axes.set_yticks([block[1] * (i + 0.5) - 0.5 for i in range(n_y)], [f"blockIdx.y = {i}" for i in range(n_y)])
    axes.tick_params(labelsize=8, labeltop=True, labelbottom=False)
    axes.add_patch(Rectangle((-0.5, -0.5), cols, rows, fill=False, edgecolor=TRUTH, linewidth=2))
    n_threads = shade.size
    axes.set_xlabel(
        f"{n_x * n_y} blocks of ({block[0]}, {block[1]}): {n_threads} threads, {rows * cols} elements, "
        f"{n_threads - rows * cols} threads without one (red); blue: one warp",
        fontsize=9,
        color=OTHER if n_threads > 2 * rows * cols else TRUTH,
    )
    return figure
