"""One access of a group of lanes to memory: resolved to a space and a place, checked, counted, then done.

Loads and stores of every width, atomics and asynchronous copies go through here. What is out of bounds or misaligned
becomes a fault and is left out: a load gives zero, a store does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit.simt import counters
from labkit.simt.block_order import note_read, note_write
from labkit.simt.lanes import Mask
from labkit.simt.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES, Part
from labkit.simt.shadow import Race

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


class GlobalAccess:
    """Where the lanes' global addresses lead. parts: regions; valid: elements that may be accessed, None: all."""

    def __init__(self, m: Machine, pc: int, addresses: np.ndarray, size: int, verb: str, who: object) -> None:
        mask = m.mask
        valid = aligned(m, pc, addresses, size, VERBS[verb], "in global memory")
        needed = (
            None if mask.covers(addresses.shape) else np.broadcast_to(mask.needed(addresses.shape), addresses.shape)
        )
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
        index = np.broadcast_to((access.addresses - region.base) // dtype.itemsize, whole)
        index = index if everything else index[chosen]
        for i, value in enumerate(values):
            spread = np.broadcast_to(value, whole)
            view[index + i if i else index] = spread if everything else spread[chosen]
        note_write(m, pc, part, access, size)


class SharedAccess:
    """The lanes of an access to shared memory that are in bounds and aligned, flat, and whether all blocks agree.

    alike: the access is the same in every block; then `rows` is 0 and the lanes are those of one block.
    """

    def __init__(self, m: Machine, pc: int, offsets: np.ndarray, size: int, verb: str) -> None:
        mask = m.mask
        valid = aligned(m, pc, offsets, size, VERBS[verb], "in shared memory")
        inside = None
        low, high = int(offsets.min()), int(offsets.max())
        if low < 0 or high + size > m.shared.n_bytes:
            inside = (offsets >= 0) & (offsets + size <= m.shared.n_bytes)
            bad = ~inside & mask.needed(offsets.shape)
            if bad.any():
                lane = first_lane(m, bad)
                at = value_at(offsets, lane)
                text = f"{VERBS[verb]} byte {at} of shared memory, but the block has {m.shared.n_bytes:,} bytes of it"
                m.fault("out of bounds", pc, text, lane, n_active(m, bad))
        if valid is not None:
            inside = valid if inside is None else inside & valid
        self.offsets = offsets if inside is None else np.where(inside, offsets, 0)
        lanes = m.lanes
        self.mask = mask if inside is None else mask.narrowed(inside)
        self.alike = self.mask.array.shape[0] == 1 and offsets.shape[0] == 1
        shape = (1 if self.alike else lanes.n_blocks, lanes.n_threads)
        if self.mask.is_all:
            self.lane_offsets = np.broadcast_to(self.offsets, shape).reshape(-1)
            self.threads = np.broadcast_to(lanes.thread_ids, shape).reshape(-1)
            self.rows = np.zeros_like(self.threads) if self.alike else np.repeat(np.arange(shape[0]), shape[1])
        else:
            self.rows, self.threads = np.nonzero(np.broadcast_to(self.mask.array, shape))
            self.lane_offsets = np.broadcast_to(self.offsets, shape)[self.rows, self.threads]
        self.wavefronts, self.conflicts = (
            counters.wavefronts(self.offsets, size, self.mask) if self.mask.any else (0, 0)
        )

    def report(self, m: Machine, pc: int, race: Race | None, verb: str) -> None:
        """A race that the shadow found, as a fault."""
        if race is None:
            return
        at = race.at[0]
        row, thread = int(self.rows[at]), int(self.threads[at])
        if race.other_thread < 0:
            who = "other threads"
        else:
            who = "thread ({}, {}, {})".format(*m.lanes.where(row, race.other_thread)[1])
        where = m.name_shared(int(self.lane_offsets[at]))
        line = m.line_of(race.other_pc)
        done = "writes" if race.kind == "write" else "reads"
        text = f"{verb} {where}, which {who} {done} at line {line} with no barrier in between"
        m.fault("race", pc, text, (row, thread), race.count * (m.lanes.n_blocks if self.alike else 1))


def shared_plan(
    m: Machine, pc: int, offsets: np.ndarray, size: int, verb: str, who: object, base: np.ndarray
) -> SharedAccess:
    """The access, taken from the last time where address and lanes are the same arrays as then.

    In an unrolled or repeated loop over a tile the lanes' base address stays what it is. who: the instruction; base:
    the register that the address comes from.
    """
    known = m.accesses.get(who)
    if known is not None and known[0] is base and known[1] is m.mask:
        return known[2]
    access = SharedAccess(m, pc, offsets, size, verb)
    if access.mask is m.mask:
        m.accesses[who] = (base, m.mask, access)
    return access


def load_shared(
    m: Machine, pc: int, line: int, offsets: np.ndarray, dtype: np.dtype, width: int, who: object, base: np.ndarray
) -> list[np.ndarray]:
    """`width` values a lane from the block's shared memory."""
    size = dtype.itemsize * width
    if m.watch is not None:
        m.watch.note(m, pc, "load", "shared", offsets, size)
    access = shared_plan(m, pc, offsets, size, "ld", who, base)
    counts = m.counts[line]
    counts["shared_load_requests"] += m.mask.n_warps
    counts["shared_load_wavefronts"] += access.wavefronts
    counts["bank_conflicts"] += access.conflicts
    mark(m, pc, access, size)
    return [m.shared.load(access.offsets + i * dtype.itemsize, m.lanes.rows, dtype) for i in range(width)]


def mark(m: Machine, pc: int, access: SharedAccess, size: int) -> None:
    """Tell the shadow of a read, and report what it finds."""
    offsets, rows, threads = shadow_lanes(m, access)
    race, unwritten = m.shadow.read(offsets, rows, threads, size, pc)
    access.report(m, pc, race, "reads")
    if unwritten >= 0:
        at = unwritten % len(access.threads)
        lane = int(rows[unwritten]), int(threads[unwritten])
        where = m.name_shared(int(access.lane_offsets[at]))
        m.fault("uninitialized shared memory", pc, f"reads {where}, which no thread has written", lane)


def shadow_lanes(m: Machine, access: SharedAccess) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(offsets, rows, threads) for the shadow: of one block where one row stands for all, else of every block."""
    compact = m.shadow.prepare(access.alike)
    if compact or not access.alike:
        return access.lane_offsets, access.rows, access.threads
    n = m.lanes.n_blocks
    rows = np.repeat(np.arange(n), len(access.threads))
    return np.tile(access.lane_offsets, n), rows, np.tile(access.threads, n)


def store_shared(
    m: Machine, pc: int, line: int, offsets: np.ndarray, values: list[np.ndarray], who: object, base: np.ndarray
) -> None:
    """Write the lanes' values to their blocks' shared memory."""
    dtype, size = values[0].dtype, values[0].dtype.itemsize * len(values)
    if m.watch is not None:
        m.watch.note(m, pc, "store", "shared", offsets, size)
    access = shared_plan(m, pc, offsets, size, "st", who, base)
    counts = m.counts[line]
    counts["shared_store_requests"] += m.mask.n_warps
    counts["shared_store_wavefronts"] += access.wavefronts
    counts["bank_conflicts"] += access.conflicts
    if not access.mask.any:
        return
    lanes = m.lanes
    whole = (lanes.n_blocks, lanes.n_threads)
    row, thread = access.mask.index if access.alike else (access.rows, access.threads)
    place = np.broadcast_to(access.offsets, whole)[row, thread]
    picked = [np.broadcast_to(value, whole)[row, thread] for value in values]
    shadow_offsets, shadow_rows, shadow_threads = shadow_lanes(m, access)
    compared = np.stack([value.view(f"u{dtype.itemsize}") for value in picked], axis=1)
    if len(shadow_threads) != len(compared):
        # One row stands for all blocks: values are compared in every block only if threads share a place.
        compared = _any_differs(compared, lanes.n_blocks, access)
    race = m.shadow.write(shadow_offsets, shadow_rows, shadow_threads, size, pc, compared)
    access.report(m, pc, race, "writes")
    for i, value in enumerate(picked):
        m.shared.store(place + i * dtype.itemsize, row, thread, value)


def _any_differs(values: np.ndarray, n_blocks: int, access: SharedAccess) -> np.ndarray:
    """Values of all blocks side by side, [lanes of a block, n_blocks * width]."""
    n = len(access.threads)
    return values.reshape(n_blocks, n, -1).transpose(1, 0, 2).reshape(n, -1)


def load_local(m: Machine, pc: int, offsets: np.ndarray, dtype: np.dtype, width: int) -> list[np.ndarray]:
    """`width` values a lane from its own local memory."""
    safe, inside = _inside_local(m, pc, offsets, dtype.itemsize * width, "reads")
    if inside is not None and not inside.any():
        return [np.zeros((1, 1), dtype) for _ in range(width)]
    return [m.local.load(safe + i * dtype.itemsize, dtype) for i in range(width)]


def store_local(m: Machine, pc: int, offsets: np.ndarray, values: list[np.ndarray]) -> None:
    """Write the lanes' values to their own local memory."""
    item = values[0].dtype.itemsize
    safe, inside = _inside_local(m, pc, offsets, item * len(values), "writes")
    mask = m.mask.full if inside is None else m.mask.full & inside
    if not mask.any():
        return
    for i, value in enumerate(values):
        m.local.store(safe + i * item, value, mask)


def _inside_local(
    m: Machine, pc: int, offsets: np.ndarray, size: int, verb: str
) -> tuple[np.ndarray, np.ndarray | None]:
    valid = aligned(m, pc, offsets, size, verb, "in local memory")
    if int(offsets.min()) >= 0 and int(offsets.max()) + size <= m.local.n_bytes and valid is None:
        return offsets, None
    inside = (offsets >= 0) & (offsets + size <= m.local.n_bytes)
    bad = ~inside & m.mask.needed(offsets.shape)
    if bad.any():
        lane = first_lane(m, bad)
        text = f"{verb} byte {value_at(offsets, lane)} of a thread's {m.local.n_bytes} bytes of local arrays"
        m.fault("out of bounds", pc, text, lane, n_active(m, bad))
    if valid is not None:
        inside &= valid
    return np.where(inside, offsets, 0), inside
