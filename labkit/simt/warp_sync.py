"""Instructions that the lanes of a warp execute together: shuffles, votes, matrix products, __syncwarp().

Lanes wait here until all that the instruction's mask names have come. Lanes that it does not name, and lanes that wait
for ever, are faults. What the instructions do is in `instructions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.lanes import Mask
from labkit.simt.plan import EVERYTHING
from labkit.simt.program import Immediate, Register, Special
from labkit.simt.values import reader

EVERY_LANE = np.uint64(0xFFFFFFFF)


class WarpSync:
    """The lanes of one chunk that wait for others of their warp. stalled: by where they wait."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.stalled: dict[tuple[int, int, int], Mask] = {}

    def arrive(self, key: tuple[int, int, int], block: Any, mask: Mask) -> None:
        """An instruction that a warp executes together: lanes wait until all that it names are there."""
        m = self.machine
        frame, end = m.frames[key[1]], block.end
        self._refuse_outsiders(block, mask)
        if mask.array is not m.alive.array and mask.n_lanes != m.alive.n_lanes:
            missing = self._missing(end, mask)
            if missing.any():
                late = mask.narrowed(np.repeat(missing, 32, axis=1))
                self.stalled[key] = late
                mask = mask.narrowed(~np.repeat(missing, 32, axis=1))
                if not mask.any:
                    return
        self.go_on(frame, key[2], block, mask)

    def go_on(self, frame: Any, number: int, block: Any, mask: Mask) -> None:
        m = self.machine
        m.frame, m.regs, m.mask = frame, frame.regs, mask
        m.blend = EVERYTHING if mask is not m.alive else m.blend
        guard = block.end.guard
        if guard is None:
            block.end_step(m)
        else:
            m.mask, m.blend = mask.narrowed(reader(guard, np.dtype(bool), block.end)(m)), EVERYTHING
            if m.mask.any:
                block.end_step(m)
        m.push(frame, number + 1, mask)

    def _named(self, end: Any) -> np.ndarray | None:
        """The lanes that an instruction of a warp names, as bits of each lane's own mask; None where it names none."""
        m = self.machine
        named = end.operands[-1] if end.operands and end.opcode not in ("mma", "ldmatrix", "movmatrix") else None
        if not isinstance(named, Register | Immediate | Special):
            return None
        return reader(named, np.dtype(np.uint32), end)(m).astype(np.uint64)

    def _refuse_outsiders(self, block: Any, mask: Mask) -> None:
        """A fault of lanes that execute the instruction though its mask does not name them."""
        m = self.machine
        value = self._named(block.end)
        if value is None or (value == EVERY_LANE).all():
            return
        guard = block.end.guard
        executing = mask if guard is None else mask.narrowed(reader(guard, np.dtype(bool), block.end)(m))
        lane = np.arange(m.lanes.n_threads, dtype=np.uint64) % np.uint64(32)
        bad = executing.full & ((value >> lane) & np.uint64(1) == 0)
        if not bad.any():
            return
        row, thread = (int(x[0]) for x in np.nonzero(bad))
        text = f"{block.end.name} is executed by lane {thread % 32} of the warp, which its mask does not name"
        pc = block.start + block.n_instructions - 1
        m.fault("warp synchronization", pc, text, (row, thread), int(bad.sum()))

    def _missing(self, end: Any, mask: Mask) -> np.ndarray:
        """[rows, n_warps] whether lanes that the instruction names have not arrived, though they are alive."""
        m = self.machine
        members = EVERY_LANE
        value = self._named(end)
        if value is not None:
            if value.size == 1:
                members = value[0, 0]
            else:
                whole = np.where(mask.full, value, np.uint64(0)).reshape(m.lanes.n_blocks, -1, 32)
                members = np.bitwise_or.reduce(whole, axis=2)
        present = mask.bits
        return (present != 0) & ((members & m.alive.bits & ~present) != 0)

    def give_up(self) -> None:
        """Let lanes that wait in vain go on without the others, with a fault."""
        m = self.machine
        key, mask = self.stalled.popitem()
        frame = m.frames[key[1]]
        block = frame.plan.blocks[key[2]]
        m.frame = frame
        pc = block.start + block.n_instructions - 1
        row, thread = (int(x[0]) for x in mask.index)
        text = f"{block.end.name} names lanes of the warp that never arrive: {mask.n_lanes:,} wait for them"
        m.fault("warp synchronization", pc, text, (row, thread), mask.n_lanes)
        self.go_on(frame, key[2], block, mask)
