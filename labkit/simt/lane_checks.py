"""What all accesses of lanes to memory share: which space they go to, whether they are aligned, who is first.

What is out of bounds or misaligned becomes a fault and is left out: a load gives zero, a store does nothing. The
accesses themselves are in `global_access`, `shared_access` and `local_access`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.lanes import Mask
from labkit.simt.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES

Machine = Any
VERBS = {"ld": "reads", "st": "writes", "atom": "updates"}


def by_space(m: Machine, addresses: np.ndarray) -> list[tuple[str, np.ndarray, Mask]]:
    """Generic addresses, split into the spaces that they point to: (space, addresses in it, lanes)."""
    needed = m.mask.needed(addresses.shape)
    inside = addresses if needed.all() else addresses[np.broadcast_to(needed, addresses.shape)]
    if inside.max() < SHARED_WINDOW:
        return [("global", addresses, m.mask)]
    found = []
    shared = (addresses >= SHARED_WINDOW) & (addresses < LOCAL_WINDOW)
    local = (addresses >= LOCAL_WINDOW) & (addresses < LOCAL_WINDOW + WINDOW_BYTES)
    for space, chosen, start in (
        ("global", ~shared & ~local, 0),
        ("shared", shared, SHARED_WINDOW),
        ("local", local, LOCAL_WINDOW),
    ):
        part = m.mask if chosen.all() else m.mask.narrowed(chosen)
        if part.any:
            found.append((space, addresses - start, part))
    return found


def first_lane(m: Machine, bad: np.ndarray) -> tuple[int, int]:
    """The first active lane (row, thread) for which `bad`, of any of the lanes' shapes, is true."""
    rows, threads = np.nonzero(m.mask.full & bad)
    return int(rows[0]), int(threads[0])


def n_active(m: Machine, bad: np.ndarray) -> int:
    """Active lanes for which `bad` is true."""
    return int(np.count_nonzero(m.mask.full & bad))


def value_at(values: np.ndarray, lane: tuple[int, int]) -> int:
    """The element of an array of any of the lanes' shapes."""
    row, thread = lane
    return int(values[row if values.shape[0] > 1 else 0, thread if values.shape[1] > 1 else 0])


def aligned(m: Machine, pc: int, addresses: np.ndarray, size: int, verb: str, name: str) -> np.ndarray | None:
    """The lanes' addresses that are multiples of their size; None: all. The others become a fault."""
    if size == 1:
        return None
    off = (addresses & (size - 1)) != 0
    if not off.any():
        return None
    off = off & m.mask.needed(addresses.shape)
    if not off.any():
        return None
    lane = first_lane(m, off)
    text = f"{verb} {size} bytes at once {name}, {value_at(addresses, lane) % size} bytes past a multiple of {size}"
    m.fault("misaligned", pc, text, lane, n_active(m, off))
    return ~off
