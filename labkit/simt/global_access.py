"""One access of a group of lanes to global memory: resolved to tensors, checked, counted, then done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labkit.simt import counters
from labkit.simt.block_order import note_read, note_write
from labkit.simt.lane_checks import VERBS, Machine, aligned, first_lane, n_active, value_at
from labkit.simt.lanes import stretched
from labkit.simt.memory import Part


class GlobalAccess:
    """Where the lanes' global addresses lead. parts: regions; valid: elements that may be accessed, None: all."""

    def __init__(self, m: Machine, pc: int, addresses: np.ndarray, size: int, verb: str, who: object) -> None:
        mask = m.mask
        valid = aligned(m, pc, addresses, size, VERBS[verb], "in global memory")
        needed = None if mask.covers(addresses.shape) else stretched(mask.needed(addresses.shape), addresses.shape)
        if valid is not None:
            needed = valid if needed is None else needed & valid
        self.addresses, self.needed = addresses, needed
        self.parts: Sequence[Part] = ()
        if needed is not None:
            if not needed.any():
                return
            self.addresses = addresses = np.where(needed, addresses, addresses[needed][0])
        self.parts, lost = m.memory.split(addresses, size, who)
        if verb != "ld":
            self._refuse_constants(m, pc)
        if lost is not None:
            lost = lost if needed is None else lost & needed
            if lost.any():
                self._out_of_bounds(m, pc, lost, size, VERBS[verb])

    def _out_of_bounds(self, m: Machine, pc: int, lost: np.ndarray, size: int, verb: str) -> None:
        lane = first_lane(m, lost)
        address = value_at(self.addresses, lane)
        region = m.memory.nearest(address)
        if region is not None:
            text = f"{verb} {region.describe(address)}"
        elif address < 4096:
            text = f"{verb} through a null pointer"
        else:
            text = f"{verb} {size} bytes at an address that belongs to none of the launch's tensors"
        m.fault("out of bounds", pc, text, lane, n_active(m, lost))

    def _refuse_constants(self, m: Machine, pc: int) -> None:
        kept = []
        for part in self.parts:
            if part.region.writable:
                kept.append(part)
                continue
            rows, threads = m.mask.index
            m.fault(
                "read only", pc, f"writes to {part.region.name}, which is constant", (int(rows[0]), int(threads[0]))
            )
        self.parts = kept


def load_global(
    m: Machine, pc: int, line: int, addresses: np.ndarray, dtype: np.dtype, width: int, strong: bool, who: object
) -> list[np.ndarray]:
    """`width` values a lane. who: the instruction, for what is remembered of it."""
    size = dtype.itemsize * width
    counts, mask = m.counts[line], m.mask
    counts["global_load_requests"] += mask.n_warps
    counts["global_load_bytes"] += mask.n_lanes * size
    if m.watch is not None:
        m.watch.note(m, pc, "load", "global", addresses, size)
    access = GlobalAccess(m, pc, addresses, size, "ld", who)
    counts["global_load_sectors"] += counters.sectors(addresses, mask)
    if strong:
        m.strong = True
    results = [np.zeros(addresses.shape, dtype) for _ in range(width)] if len(access.parts) != 1 else []
    for part in access.parts:
        region = part.region
        view = region.view(dtype)
        if part.chosen is None:
            index = (access.addresses - region.base) // dtype.itemsize
            results = [view[index + i] if i else view[index] for i in range(width)]
        else:
            chosen = part.chosen
            index = (access.addresses[chosen] - region.base) // dtype.itemsize
            results = results or [np.zeros(addresses.shape, dtype) for _ in range(width)]
            for i, result in enumerate(results):
                result[chosen] = view[index + i]
        note_read(m, pc, part, access, size, strong)
    return results


def store_global(
    m: Machine, pc: int, line: int, addresses: np.ndarray, values: list[np.ndarray], strong: bool, who: object
) -> None:
    """Write the lanes' values; of several lanes at one place, the last one stays."""
    dtype, size = values[0].dtype, values[0].dtype.itemsize * len(values)
    counts, mask = m.counts[line], m.mask
    counts["global_store_requests"] += mask.n_warps
    counts["global_store_bytes"] += mask.n_lanes * size
    counts["global_store_sectors"] += counters.sectors(addresses, mask)
    if strong:
        m.strong = True
    if m.watch is not None:
        m.watch.note(m, pc, "store", "global", addresses, size)
    access = GlobalAccess(m, pc, addresses, size, "st", who)
    whole = mask.full.shape
    for part in access.parts:
        region = part.region
        view = region.view(dtype)
        chosen = mask.full
        for further in (part.chosen, access.needed):
            chosen = chosen if further is None else chosen & further
        everything = chosen is mask.full and mask.is_all
        index = stretched((access.addresses - region.base) // dtype.itemsize, whole)
        index = index if everything else index[chosen]
        for i, value in enumerate(values):
            spread = stretched(value, whole)
            view[index + i if i else index] = spread if everything else spread[chosen]
        note_write(m, pc, part, access, size)
