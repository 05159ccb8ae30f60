"""Reads of what another block writes in the same launch: nothing orders the two, so the value depends on luck.

For each granule of 4 bytes of a tensor: the block that wrote it last and the one that read it. It is no fault where
the writing block has passed a __threadfence() since and the reading block an atomic or volatile access after that
(the last block of a reduction adds up what the others have written), nor where the read itself is volatile or atomic.
Tensors that the kernel never writes to are not watched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.lanes import stretched
from labkit.simt.memory import Part, Region

GRANULE_SHIFT = 2
NONE, SEVERAL = -1, -2


def watched(m: Any, region: Region) -> bool:
    """Whether blocks could meet in this region."""
    return m.watch_blocks and region.writable and region.name in m.stored_names


def _marks(region: Region) -> tuple[np.ndarray, np.ndarray]:
    if region.writer is None:
        size = (region.data.size >> GRANULE_SHIFT) + 1
        region.writer, region.reader = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    return region.writer, region.reader


def _lanes(m: Any, part: Part, access: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(byte in the region, block, flat lane) of every lane that accesses the region."""
    shape = m.mask.full.shape
    chosen = m.mask.full
    for further in (part.chosen, access.needed):
        chosen = chosen if further is None else chosen & further
    offsets = stretched(access.addresses - part.region.base, shape)
    blocks = stretched(m.lanes.block_ids, shape)
    if chosen.all():
        return offsets.reshape(-1), blocks.reshape(-1), np.arange(offsets.size)
    flat = np.flatnonzero(chosen)
    return offsets.reshape(-1)[flat], blocks.reshape(-1)[flat], flat


def note_read(m: Any, pc: int, part: Part, access: Any, size: int, strong: bool) -> None:
    """Remember who read, and report reads of what another block has written."""
    region = part.region
    if not watched(m, region) or strong:
        return
    writer, reader = _marks(region)
    offsets, blocks, flat = _lanes(m, part, access)
    for piece in range(0, size, 1 << GRANULE_SHIFT):
        place = (offsets + piece) >> GRANULE_SHIFT
        other = writer[place]
        bad = (other >= 0) & (other != blocks)
        if bad.any():
            bad &= ~m.published_to(other, blocks)
        if bad.any():
            _report(m, pc, region, offsets + piece, flat, other, bad, "reads", "writes")
        known = reader[place]
        reader[place] = np.where((known == NONE) | (known == blocks), blocks, SEVERAL)


def note_write(m: Any, pc: int, part: Part, access: Any, size: int) -> None:
    """Remember who wrote, and report writes to what another block has read."""
    region = part.region
    if not watched(m, region):
        return
    writer, reader = _marks(region)
    offsets, blocks, flat = _lanes(m, part, access)
    for piece in range(0, size, 1 << GRANULE_SHIFT):
        place = (offsets + piece) >> GRANULE_SHIFT
        other = reader[place]
        bad = (other != NONE) & (other != blocks)
        if bad.any():
            bad &= ~m.published_to(other, blocks)
        if bad.any():
            _report(m, pc, region, offsets + piece, flat, other, bad, "writes", "reads")
        writer[place] = blocks


def _report(
    m: Any,
    pc: int,
    region: Region,
    offsets: np.ndarray,
    flat: np.ndarray,
    other: np.ndarray,
    bad: np.ndarray,
    verb: str,
    done: str,
) -> None:
    first = int(np.argmax(bad))
    lane = divmod(int(flat[first]), m.lanes.n_threads)
    who = "other blocks read" if other[first] < 0 else f"block {int(other[first])} {done}"
    where = region.describe(region.base + int(offsets[first]))
    text = f"{verb} {where}, which {who} in the same launch: blocks run in any order"
    m.fault("race between blocks", pc, text, lane, int(bad.sum()))
