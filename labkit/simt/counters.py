"""What one access of a warp costs: sectors of global memory, wavefronts of shared memory, conflicts of atomics.

Definitions as in Nsight Compute's "Memory Workload Analysis". A **request** is one instruction of one warp. A
**sector** is an aligned 32 bytes of global memory; a request costs as many as its lanes touch (metric
l1tex__t_sectors). A **wavefront** is one pass of shared memory (l1tex__data_pipe_lsu_wavefronts_mem_shared): 32 banks
of 4 bytes serve one word each; lanes that ask for the same word share it. Accesses of 8 and 16 bytes a lane are served
in two and four parts of 16 and 8 lanes. Caches, their hits and latencies are not simulated.
"""

from __future__ import annotations

import numpy as np

from labkit.simt.lanes import WARP, Mask, stretched

SECTOR_SHIFT = 5
BANK_BYTES = 4


def by_warp(values: np.ndarray, mask: Mask) -> tuple[np.ndarray, np.ndarray | None, int]:
    """values as [warps, 32], the mask alike (None: all), and how many times these warps occur in the chunk."""
    lanes = mask.lanes
    rows = max(values.shape[0], mask.array.shape[0])
    shape = (rows, lanes.n_threads)
    flat = stretched(values, shape).reshape(-1, WARP)
    active = None if mask.is_all else stretched(mask.array, shape).reshape(-1, WARP)
    return flat, active, lanes.n_blocks // rows


def distinct(values: np.ndarray, active: np.ndarray | None) -> int:
    """How many different values the rows have, each row counted for itself; all >= 0."""
    if active is not None:
        values = np.where(active, values, -1)
    steps = np.diff(values, axis=1)
    if (steps < 0).any():
        values = np.sort(values, axis=1)
        steps = np.diff(values, axis=1)
    found = int(np.count_nonzero(steps)) + len(values)
    # The -1 of inactive lanes is a value, too, in every row that has one.
    return found if active is None else found - int(np.count_nonzero(values[:, 0] < 0))


def sectors(addresses: np.ndarray, mask: Mask) -> int:
    """Sectors that the lanes of the mask touch, summed over warps. addresses: bytes, of aligned accesses."""
    values, active, times = by_warp(addresses >> SECTOR_SHIFT, mask)
    return distinct(values, active) * times


def wavefronts(addresses: np.ndarray, size: int, mask: Mask) -> tuple[int, int]:
    """Passes of shared memory, summed over warps, and those of them that bank conflicts add.

    size: bytes a lane, a power of two up to 16.
    """
    unit = max(size, BANK_BYTES)
    group = WARP * BANK_BYTES // unit
    array, times = mask.kinds if len(addresses) == 1 else (mask.array, np.ones(len(addresses), int))
    shape = (max(len(addresses), len(array)), mask.lanes.n_threads)
    values = stretched(addresses // unit, shape).reshape(-1, group)
    if not mask.is_all:
        values = np.where(stretched(array, shape).reshape(-1, group), values, -1)
    values = np.sort(values, axis=1)
    new = values >= 0
    new[:, 1:] &= values[:, 1:] != values[:, :-1]
    place = (np.arange(len(values))[:, None] * group + values % group)[new]
    passes = np.bincount(place, minlength=len(values) * group).reshape(-1, group).max(1).reshape(shape[0], -1)
    taken, served = int(passes.sum(1) @ times), int(np.count_nonzero(passes, axis=1) @ times)
    return taken, taken - served


def conflicts(addresses: np.ndarray, mask: Mask) -> int:
    """Lanes of atomics beyond the first at each address of their warp: they wait for one another."""
    values, active, times = by_warp(addresses, mask)
    return mask.n_lanes - distinct(values, active) * times
