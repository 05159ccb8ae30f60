"""What one warp of a launch accesses, instruction by instruction: which lane which bytes.

    profile = kernel.launch(grid, block, x, y, watch=(0, 0))
    profile.accesses[0]

Counters add up over all warps and say nothing about places; here it is the other way round. Loads, stores and
asynchronous copies of global and shared memory are noted, local memory and atomics are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.simt.lanes import WARP

MOST = 4096
"""Accesses that are kept of a launch: the first ones."""


@dataclass(frozen=True)
class WarpAccess:
    """One instruction of the warp that accesses memory.

    kind: "load" or "store". space: "global" or "shared". name: of the tensor or the shared variable. size: bytes of a
    lane. element: bytes of an element of it. places: of each lane the byte where its access begins, counted from the
    first element; None: the lane does not take part. start: that element's own address, in bytes.

        WarpAccess(4, "load", "global", "x", 4, 4, (0, 4, None), 0)
    """

    line: int
    kind: str
    space: str
    name: str
    size: int
    element: int
    places: tuple[int | None, ...]
    start: int

    @property
    def active(self) -> tuple[int, ...]:
        """The lanes that take part."""
        return tuple(lane for lane, place in enumerate(self.places) if place is not None)


class Watch:
    """Notes the accesses of one warp. block: its number in the grid, x fastest; warp: its number in the block."""

    def __init__(self, block: int, warp: int) -> None:
        self.block, self.warp = block, warp
        self.accesses: list[WarpAccess] = []

    def note(self, m: Any, pc: int, kind: str, space: str, addresses: np.ndarray, size: int) -> None:
        """What the running lanes are about to access, if the warp is among them. addresses: of any of their shapes."""
        row = self.block - m.lanes.first_block
        if not 0 <= row < m.lanes.n_blocks or len(self.accesses) >= MOST:
            return
        lanes = slice(self.warp * WARP, (self.warp + 1) * WARP)
        active = m.mask.full[row, lanes]
        if not active.any():
            return
        whole = np.broadcast_to(addresses, m.mask.full.shape)[row, lanes]
        first = int(whole[int(np.argmax(active))])
        if space == "global":
            region = m.memory.nearest(first)
            name, start, element = (region.name, region.start, region.element) if region else ("", 0, 1)
        else:
            name, start, element = m.shared_variable(first)
        places = tuple(int(at) - start if on else None for at, on in zip(whole, active, strict=True))
        self.accesses.append(WarpAccess(m.line_of(pc), kind, space, name, size, element, places, start))
