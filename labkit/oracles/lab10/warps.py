"""Lab 10: the threads of a launch as warps of 32 lanes, and what the addresses of a warp cost.

No kernel is compiled here: the addresses come from the case, by the index that the lab asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.simt.counters import SECTOR_SHIFT, distinct
from labkit.simt.lanes import WARP


@dataclass(frozen=True)
class Warps:
    """x, y: each thread's place in the whole grid, [warps, 32]; there: lanes that exist, for a block may end within a
    warp.
    """

    x: np.ndarray
    y: np.ndarray
    there: np.ndarray


def warps_of(grid: tuple[int, int], block: tuple[int, int]) -> Warps:
    """All threads of a launch in two dimensions, in the order of their numbers."""
    n_threads = block[0] * block[1]
    padded = -(-n_threads // WARP) * WARP
    number = np.arange(padded)
    tx, ty = number % block[0], number // block[0]
    bx, by = np.meshgrid(np.arange(grid[0]), np.arange(grid[1]))
    x = (bx.reshape(-1, 1) * block[0] + tx).reshape(-1, WARP)
    y = (by.reshape(-1, 1) * block[1] + ty).reshape(-1, WARP)
    there = np.broadcast_to(number < n_threads, (bx.size, padded)).reshape(-1, WARP)
    return Warps(x, y, there)


def n_sectors(addresses: np.ndarray, active: np.ndarray) -> int:
    """Sectors of 32 bytes that warps touch, as the executor counts them. addresses: bytes, [warps, 32]."""
    asks = active.any(1)
    return distinct((addresses >> SECTOR_SHIFT)[asks], active[asks]) if asks.any() else 0
