"""One access of a group of lanes to shared memory: checked, counted, told to the shadow that finds races, then done."""

from __future__ import annotations

import numpy as np

from labkit.simt import counters
from labkit.simt.faults import index_in_words
from labkit.simt.lane_checks import VERBS, Machine, aligned, first_lane, n_active, value_at
from labkit.simt.lanes import stretched
from labkit.simt.shadow import Race, Together


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
        self.together: Together | None = None
        shape = (1 if self.alike else lanes.n_blocks, lanes.n_threads)
        if self.mask.is_all:
            self.lane_offsets = stretched(self.offsets, shape).reshape(-1)
            self.threads = stretched(lanes.thread_ids, shape).reshape(-1)
            self.rows = np.zeros_like(self.threads) if self.alike else np.repeat(np.arange(shape[0]), shape[1])
        else:
            self.rows, self.threads = np.nonzero(stretched(self.mask.array, shape))
            self.lane_offsets = stretched(self.offsets, shape)[self.rows, self.threads]
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
            who = f"thread {index_in_words(m.lanes.where(row, race.other_thread)[1])}"
        where = m.name_shared(int(self.lane_offsets[at]))
        line = m.line_of(race.other_pc)
        done = ("write" if race.kind == "write" else "read") + ("" if race.other_thread < 0 else "s")
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


def refuse_pending(m: Machine, pc: int, access: SharedAccess, size: int, verb: str) -> None:
    """A fault of an access to bytes that an asynchronous copy may not have brought yet."""
    found = m.copies.pending(access.lane_offsets, access.rows, size)
    if found is None:
        return
    at, other = found
    lane = int(access.rows[at]), int(access.threads[at])
    who = "the same thread" if other == lane[1] else f"thread {index_in_words(m.lanes.where(lane[0], other)[1])}"
    where = m.name_shared(int(access.lane_offsets[at]))
    m.fault("pending copy", pc, f"{verb} {where}, to which {who} has begun a copy and not waited for it", lane)


def mark(m: Machine, pc: int, access: SharedAccess, size: int) -> None:
    """Tell the shadow of a read, and report what it finds."""
    if m.copies is not None and m.copies.waits:
        refuse_pending(m, pc, access, size, "reads")
    if access.together is not None and m.shadow.read_alike(access.together, pc):
        return
    offsets, rows, threads = shadow_lanes(m, access)
    if access.together is None and access.alike and len(threads):
        access.together = m.shadow.together(access.lane_offsets, access.threads, size)
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
    m: Machine,
    pc: int,
    line: int,
    offsets: np.ndarray,
    values: list[np.ndarray],
    who: object,
    base: np.ndarray,
    copies: bool = False,
) -> None:
    """Write the lanes' values to their blocks' shared memory. copies: for an asynchronous copy."""
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
    if m.copies is not None and m.copies.waits and not copies:
        refuse_pending(m, pc, access, size, "writes")
    lanes = m.lanes
    whole = (lanes.n_blocks, lanes.n_threads)
    row, thread = access.mask.index if access.alike else (access.rows, access.threads)
    place = stretched(access.offsets, whole)[row, thread]
    picked = [stretched(value, whole)[row, thread] for value in values]
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
