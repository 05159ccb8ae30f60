"""Who accessed which piece of shared memory since the last barrier, so that one run finds races that luck would hide.

For each granule (the size of the kernel's smallest access to shared memory): the last thread that wrote it, the last
that read it, and whether several have read it. Two accesses race when they come from different threads, at least one
writes, they are not both atomic, and neither a barrier of the block nor, within a warp, a __syncwarp() lies between
them. A barrier of some threads of a block orders these threads; accesses of the others from before it may then be
forgotten, so that a race with them is missed.

Threads that write the same value by one instruction do not race here. CUDA leaves open only which of them writes last
(CUDA C++ Programming Guide, "Hardware Multithreading"), and the place holds that value whichever it is. Compute
Sanitizer's racecheck ranks hazards without an effect as INFO, its lowest level, which it does not print by default.

While all blocks do the same, one row stands for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.simt.lanes import WARP, Lanes

_THREAD_BITS = 11
_THREAD = (1 << _THREAD_BITS) - 1
_ATOMIC = 1 << 11
_SEVERAL_HERE = 1 << 12
_SEVERAL_WARPS = 1 << 13
_SYNC_SHIFT = 14
_SYNC = (1 << 20) - 1
_EPOCH_SHIFT = 34


@dataclass(frozen=True)
class Race:
    """The first of the races that one access found.

    at: its place in the arrays of the access; other_thread: who accessed before (-1: several), at instruction other_pc.
    """

    at: tuple[int, int]
    kind: str
    other_thread: int
    other_pc: int
    count: int


@dataclass(frozen=True)
class Together:
    """The lanes of one block that read by one instruction, worked out once for all times that they do it.

    place: each lane's granule. mark: what the granule's mark will be if nobody has read it since the last barrier, less
    its epoch. Without a __syncwarp() in the kernel it is always the same.
    """

    place: np.ndarray
    mark: np.ndarray


class Shadow:
    """The marks of one chunk's shared memory.

    A mark is epoch | count of __syncwarp()s | several warps | several here | atomic | thread + 1, of one int64; epoch
    counts the block's barriers, so that a barrier forgets all marks by counting.
    """

    def __init__(self, lanes: Lanes, n_bytes: int, granule: int) -> None:
        self.lanes = lanes
        self.granule = granule
        shape = (1, -(-n_bytes // granule) + 1)
        self.writer, self.reader = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.writer_pc, self.reader_pc = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        self.written = np.zeros(shape, bool)
        self.epoch = np.ones((1, 1), np.int64)
        self.synced = np.zeros((1, lanes.n_warps), np.int64)
        self._never_synced = True

    def barrier(self, blocks: np.ndarray | None) -> None:
        """These blocks (bool [n_blocks]; None: all) pass a barrier of all of their threads."""
        if blocks is None or blocks.all():
            self.epoch = self.epoch + 1
        else:
            self.epoch = self.epoch + blocks[:, None]

    def partial_barrier(self, members: np.ndarray) -> None:
        """Threads [n_blocks, n_threads] pass a barrier together: forget what they did before it."""
        self._spread()
        for marks in (self.writer, self.reader):
            thread = np.maximum((marks & _THREAD) - 1, 0)
            marks[np.take_along_axis(members, thread, axis=1)] = 0

    def sync_warps(self, warps: np.ndarray) -> None:
        """These warps (bool [rows, n_warps]) pass a __syncwarp()."""
        self.synced = self.synced + warps
        self._never_synced = False

    def _spread(self) -> None:
        """From one row for all blocks to a row for each."""
        if len(self.writer) < self.lanes.n_blocks:
            for name in ("writer", "reader", "writer_pc", "reader_pc", "written"):
                setattr(self, name, np.repeat(getattr(self, name), self.lanes.n_blocks, axis=0))

    def _places(self, offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Flat places of the granules at these bytes. rows: the blocks' rows, or 0 where one stands for all."""
        if len(self.writer) == 1 and not rows.any():
            return offsets // self.granule
        self._spread()
        return rows * self.writer.shape[1] + offsets // self.granule

    def prepare(self, alike: bool) -> bool:
        """Whether one row can stand for all blocks in an access; alike: the access itself is the same in all."""
        if not alike or len(self.epoch) > 1 or len(self.synced) > 1:
            self._spread()
        return len(self.writer) == 1

    def _now(self, threads: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The epoch and the count of __syncwarp()s of these lanes."""
        epoch = self.epoch[0, 0] if len(self.epoch) == 1 else self.epoch[rows, 0]
        synced = self.synced[rows if len(self.synced) > 1 else 0, threads // WARP]
        return epoch, synced & _SYNC

    def together(self, offsets: np.ndarray, threads: np.ndarray, size: int) -> Together | None:
        """For `read_alike`: these lanes of one block; None where an access has several granules."""
        if size != self.granule:
            return None
        place = offsets // self.granule
        own, marks = threads + 1, np.zeros(self.reader.shape[1], np.int64)
        marks[place] = own
        self._mark_together(marks, place, own, marks[place], threads)
        return Together(place, marks[place])

    def read_alike(self, lanes: Together, pc: int) -> bool:
        """Mark reads that all blocks do alike, if nothing is to be told of them: no place is unwritten, and none was
        accessed since the last barrier. False where something may be, and `read` has to look.
        """
        if len(self.writer) > 1 or len(self.epoch) > 1 or not self._never_synced:
            return False
        epoch, place = self.epoch[0, 0] << _EPOCH_SHIFT, lanes.place
        # Epochs only grow, so a mark of this one is at least as large.
        if self.writer[0].take(place).max() >= epoch or self.reader[0].take(place).max() >= epoch:
            return False
        if not self.written[0].take(place).all():
            return False
        self.reader[0, place] = epoch | lanes.mark
        self.reader_pc[0, place] = pc
        return True

    def read(
        self, offsets: np.ndarray, rows: np.ndarray, threads: np.ndarray, size: int, pc: int, atomic: bool = False
    ) -> tuple[Race | None, int]:
        """Mark reads. offsets, rows, threads: [n], one for each lane. Returns a race and the first lane that reads
        what nobody has written, -1 if there is none."""
        race, unwritten = None, -1
        for piece in range(0, size, self.granule):
            place = self._places(offsets + piece, rows)
            epoch, synced = self._now(threads, rows)
            writer = self.writer.reshape(-1)[place]
            bad = self._conflict(writer, epoch, synced, threads)
            if atomic:
                bad &= (writer & _ATOMIC) == 0
            race = race or self._race(bad, "write", self.writer_pc, writer, place)
            known = self.written.reshape(-1)[place]
            if unwritten < 0 and not known.all():
                unwritten = int(np.argmin(known))
            self._mark_reader(place, epoch, synced, threads, pc)
        return race, unwritten

    def known(self, offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """[n] whether anybody has written these places since the launch began."""
        return self.written.reshape(-1)[self._places(offsets, rows)]

    def _mark_reader(self, place: np.ndarray, epoch, synced: np.ndarray, threads: np.ndarray, pc: int) -> None:
        marks = self.reader.reshape(-1)
        old = marks[place]
        own = (epoch << _EPOCH_SHIFT) | (synced << _SYNC_SHIFT) | (threads + 1)
        marks[place] = own
        self._note_several(marks, place, old, own, epoch, synced, threads)
        self.reader_pc.reshape(-1)[place] = pc

    def _note_several(self, marks: np.ndarray, place, old, own, epoch, synced: np.ndarray, threads: np.ndarray) -> None:
        """Flag the marks, which are `own` now and were `old`, where other threads have accessed the place as well."""
        latest = marks[place]
        here = (old >> _EPOCH_SHIFT) == epoch
        if not here.any():
            self._mark_together(marks, place, own, latest, threads)
            return
        old_warp, warp = ((old & _THREAD) - 1) // WARP, threads // WARP
        latest_warp = ((latest & _THREAD) - 1) // WARP
        same_sync = ((old >> _SYNC_SHIFT) & _SYNC) == synced
        several = here & ((old_warp != warp) | ((old & _SEVERAL_WARPS) != 0)) | (latest_warp != warp)
        inside = (
            here & (old_warp == warp) & same_sync & (((old & _THREAD) != threads + 1) | ((old & _SEVERAL_HERE) != 0))
        )
        inside |= (latest_warp == warp) & (latest != own)
        flags = several * _SEVERAL_WARPS | inside * _SEVERAL_HERE
        if flags.any():
            np.bitwise_or.at(marks, place[flags != 0], flags[flags != 0])

    def _mark_together(self, marks: np.ndarray, place: np.ndarray, own, latest, threads: np.ndarray) -> None:
        """Places that several lanes read by one instruction, and nobody since the last barrier before it."""
        others = np.flatnonzero(latest != own)
        if not len(others):
            return
        other_warp = ((latest[others] & _THREAD) - 1) // WARP != threads[others] // WARP
        for flag, lanes in ((_SEVERAL_WARPS, others[other_warp]), (_SEVERAL_HERE, others[~other_warp])):
            marks[place[lanes]] |= flag

    def write(
        self,
        offsets: np.ndarray,
        rows: np.ndarray,
        threads: np.ndarray,
        size: int,
        pc: int,
        values: np.ndarray | None,
        atomic: bool = False,
    ) -> Race | None:
        """Mark writes. values: [n, …] what each lane writes, so that equal ones of one instruction do not race."""
        race = None
        for piece in range(0, size, self.granule):
            place = self._places(offsets + piece, rows)
            epoch, synced = self._now(threads, rows)
            writer, reader = self.writer.reshape(-1)[place], self.reader.reshape(-1)[place]
            bad = self._conflict(writer, epoch, synced, threads)
            if atomic:
                bad &= (writer & _ATOMIC) == 0
            race = race or self._race(bad, "write", self.writer_pc, writer, place)
            bad = self._conflict(reader, epoch, synced, threads)
            race = race or self._race(bad, "read", self.reader_pc, reader, place)
            marks = self.writer.reshape(-1)
            own = (epoch << _EPOCH_SHIFT) | (synced << _SYNC_SHIFT) | (threads + 1)
            own = own | (_ATOMIC if atomic else 0)
            marks[place] = own
            if atomic:
                self._note_several(marks, place, writer, own, epoch, synced, threads)
            else:
                race = race or self._together(place, marks[place], threads, values, pc)
            self.writer_pc.reshape(-1)[place] = pc
            self.written.reshape(-1)[place] = True
        return race

    def _together(self, place: np.ndarray, latest: np.ndarray, threads: np.ndarray, values, pc: int) -> Race | None:
        """Threads that write one place by the same instruction, and not the same value."""
        twice = (latest & _THREAD) != threads + 1
        if not twice.any() or values is None:
            return None
        order = np.argsort(place, kind="stable")
        same = np.diff(place[order]) == 0
        differs = same & (values[order][1:] != values[order][:-1]).reshape(len(place) - 1, -1).any(1)
        if not differs.any():
            return None
        first = int(np.argmax(differs))
        return Race((int(order[first + 1]), 0), "write", int(threads[order[first]]), pc, int(differs.sum()))

    def _conflict(self, marks: np.ndarray, epoch, synced: np.ndarray, threads: np.ndarray) -> np.ndarray:
        """Which marks are of another thread, with nothing in between that orders the two."""
        here = (marks >> _EPOCH_SHIFT) == epoch
        if not here.any():
            return here
        other = (marks & _THREAD) - 1
        same_warp = other // WARP == threads // WARP
        ordered = same_warp & (((marks >> _SYNC_SHIFT) & _SYNC) != synced)
        alone = (other == threads) & ((marks & _SEVERAL_HERE) == 0)
        return here & ((~ordered & ~alone) | ((marks & _SEVERAL_WARPS) != 0))

    def _race(self, bad: np.ndarray, kind: str, pcs: np.ndarray, marks: np.ndarray, place: np.ndarray) -> Race | None:
        if not bad.any():
            return None
        first = int(np.argmax(bad))
        several = marks[first] & (_SEVERAL_HERE | _SEVERAL_WARPS)
        other = -1 if several else int(marks[first] & _THREAD) - 1
        return Race((first, 0), kind, other, int(pcs.reshape(-1)[place[first]]), int(bad.sum()))
