"""Asynchronous copies to shared memory that nobody has waited for yet, so that reading what they bring is a fault.

The bytes of a `cp.async` arrive at once here; on a GPU they arrive some time before the thread that began the copy
passes a wait for it. A thread's copies belong to groups: each commit closes one, and `wait_group n` waits for all but
the last n. Other threads see the bytes after that wait and a barrier; the barrier is the business of `shadow`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.lanes import Lanes, Mask

NOBODY = -1


class Copies:
    """The copies of one chunk. owner, group: by block and granule of shared memory, who began the last copy to it."""

    def __init__(self, lanes: Lanes, n_bytes: int, granule: int) -> None:
        self.granule = granule
        n_granules = -(-n_bytes // granule) + 1
        self.owner = np.full((lanes.n_blocks, n_granules), NOBODY, np.int32)
        self.group = np.zeros((lanes.n_blocks, n_granules), np.int32)
        self.committed = np.zeros((lanes.n_blocks, lanes.n_threads), np.int32)
        self.done = np.zeros_like(self.committed)
        self.waits = False

    def begin(self, offsets: np.ndarray, size: int, mask: Mask) -> None:
        """These lanes begin to copy `size` bytes to these places of their blocks' shared memory."""
        rows, threads = mask.index
        places = np.broadcast_to(offsets, mask.full.shape)[rows, threads]
        inside = (places >= 0) & (places + size <= (self.owner.shape[1] - 1) * self.granule)
        rows, threads, places = rows[inside], threads[inside], places[inside]
        for piece in range(-(-size // self.granule)):
            at = places // self.granule + piece
            self.owner[rows, at] = threads
            self.group[rows, at] = self.committed[rows, threads]
        self.waits = True

    def commit(self, mask: Mask) -> None:
        """The copies that these lanes have begun since their last commit are a group."""
        self.committed += mask.full

    def wait(self, n_left: int, mask: Mask) -> None:
        """These lanes wait for all of their groups but the last n_left."""
        self.done = np.where(mask.full, np.maximum(self.done, self.committed - n_left), self.done)
        owner = np.maximum(self.owner, 0)
        arrived = self.group < np.take_along_axis(self.done, owner, axis=1)
        self.owner[arrived] = NOBODY
        self.waits = bool((self.owner != NOBODY).any())

    def pending(self, places: np.ndarray, rows: np.ndarray, size: int) -> tuple[int, int] | None:
        """Of accesses to these places, the first to a copy that is under way, and the thread that began it; or None."""
        for piece in range(-(-size // self.granule)):
            owners = self.owner[rows, np.minimum(places // self.granule + piece, self.owner.shape[1] - 1)]
            found = np.flatnonzero(owners != NOBODY)
            if len(found):
                return int(found[0]), int(owners[found[0]])
        return None


def copies_of(m: Any) -> Copies:
    """The chunk's copies, from the first one on."""
    if m.copies is None:
        m.copies = Copies(m.lanes, m.shared.n_bytes, m.shadow.granule)
    return m.copies
