"""Runs one chunk of a launch: all of its blocks at once, each register an array with one element a lane.

Lanes step together as long as they stand at the same instruction. Of several groups, the one in the deepest call and
at the lowest address runs first, so that lanes that part at a branch meet again where the branches do. (A GPU's
compiler decides that; it agrees for structured code.) Groups that spin on memory, by atomics or volatile loads, take
turns with the others, so that a lock is handed over.

What one instruction does is in `instructions`; which launches are made of which chunks in `launch`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from labkit.simt.barriers import Barriers
from labkit.simt.calls import call, leave, new_frame
from labkit.simt.copies import Copies
from labkit.simt.faults import Fault, FaultLog, Stop
from labkit.simt.frames import Frame
from labkit.simt.lanes import Lanes, Mask
from labkit.simt.memory import Memory
from labkit.simt.plan import Plan
from labkit.simt.shadow import Shadow
from labkit.simt.spaces import Local, Shared
from labkit.simt.values import reader
from labkit.simt.warp_sync import WarpSync
from labkit.simt.watching import Watch
from labkit.simt.work import Tally, too_much

Key = tuple[int, int, int]
"""-depth of the frame, its number, the block: the least runs first."""

PATIENCE = 256
"""Steps that one group may spin on memory while others wait."""
STEP_WORK = 4096
"""What a step takes beside its lanes, in lanes: one of a single lane takes as long as one of some thousand."""
NOTHING: frozenset[int] = frozenset()


class Machine:
    """The state of one chunk. regs, mask, blend, frame: of the group that is running."""

    def __init__(
        self,
        plans: Mapping[str, Plan],
        entry: str,
        lanes: Lanes,
        memory: Memory,
        symbols: Mapping[str, int],
        parameters: Mapping[str, bytes],
        shared_bytes: int,
        granule: int,
        counts: defaultdict[int, Counter[str]],
        faults: FaultLog,
        max_work: int,
        work_before: int,
        several_blocks: bool,
        shared_names: list[tuple[str, int, int]],
        stored_names: frozenset[str],
        published: dict[int, int],
        acquired: dict[int, int],
    ) -> None:
        self.plans, self.lanes, self.memory, self.symbols = plans, lanes, memory, symbols
        self.parameters, self.counts, self.faults, self.max_work = parameters, counts, faults, max_work
        self.watch_blocks = several_blocks
        self.stored_names = stored_names
        self.shared, self.local = Shared(lanes, shared_bytes), Local(lanes)
        self.shadow = Shadow(lanes, shared_bytes, granule)
        self.barriers, self.warp_sync = Barriers(self), WarpSync(self)
        self.alive = lanes.everyone
        self.tallies = {name: Tally(*([0] * (len(plan.blocks) + 1) for _ in range(3))) for name, plan in plans.items()}
        self.steps = 0
        self.work = self.work_before = work_before
        self.work_a_step = lanes.n_blocks * lanes.n_threads + STEP_WORK
        self.strong = False
        self.carry = np.zeros((1, 1), bool)
        self.watch: Watch | None = None
        self.n_printed = 0
        self.copies: Copies | None = None
        self.accesses: dict[object, tuple] = {}
        self.published = published
        self.acquired = acquired
        self.shared_names = shared_names
        self.frames: list[Frame] = []
        first = new_frame(self, plans[entry], None, 0)
        self.frame, self.regs, self.mask = first, first.regs, self.alive
        self.blend: object = NOTHING
        self.ready: dict[Key, Mask] = {(0, 0, 0): self.alive}
        first.active = self.alive
        self._spun, self._reversed = 0, False

    # What instructions ask for.

    def symbol(self, name: str) -> int:
        """The address of a variable; of a local one, in the stack of the running frame."""
        local = self.frame.plan.local_offsets.get(name)
        return self.symbols[name] if local is None else local + self.frame.local_base

    def name_shared(self, offset: int) -> str:
        """A byte of shared memory as the kernel calls it: "tile[12]", "byte 48 of shared memory"."""
        name, start, element = self.shared_variable(offset)
        return f"{name}[{(offset - start) // element}]" if name else f"byte {offset} of shared memory"

    def shared_variable(self, offset: int) -> tuple[str, int, int]:
        """(name, where it begins, bytes of an element) of the variable that this byte of shared memory belongs to."""
        return max((one for one in self.shared_names if one[1] <= offset), key=lambda one: one[1], default=("", 0, 1))

    def touched_atomically(self) -> None:
        """The running lanes' blocks have looked at memory in a way that orders what follows."""
        for row in np.flatnonzero(self.mask.by_block):
            self.acquired[self.lanes.first_block + int(row)] = self.steps

    def fence(self) -> None:
        """What the running lanes' blocks have written so far is there for all to see."""
        for row in np.flatnonzero(self.mask.by_block):
            self.published[self.lanes.first_block + int(row)] = self.steps

    def published_to(self, writers: np.ndarray, readers: np.ndarray) -> np.ndarray:
        """[n] whether the writing block has fenced its writes, and the reading block looked after that."""
        if not self.published or not self.acquired:
            return np.zeros(len(readers), bool)
        known = [
            int(w) in self.published and self.acquired.get(int(r), -1) >= self.published[int(w)]
            for w, r in zip(writers, readers, strict=True)
        ]
        return np.array(known, bool)

    def smem_size(self, _name: str) -> int:
        return self.shared.n_bytes

    def fault(self, kind: str, pc: int, text: str, lane: tuple[int, int] | None = None, count: int = 1) -> None:
        """Log a fault of the instruction at pc. lane: (row, thread) of the first that did it."""
        block, thread = self.lanes.where(*lane) if lane else (None, None)
        self.faults.add(Fault(kind, self.line_of(pc), text, thread, block, count))

    def line_of(self, pc: int) -> int:
        """The source line of an instruction of the running function."""
        code = self.frame.plan.function.code
        return code[min(pc, len(code) - 1)].line

    # The schedule.

    def run(self) -> None:
        """Run every lane to its end. Raises `Stop` where the launch cannot go on."""
        with np.errstate(all="ignore"):
            while self.ready or self._unblock():
                key = self._choose()
                mask = self.ready.pop(key)
                if key in self.warp_sync.stalled:
                    mask = mask.joined(self.warp_sync.stalled.pop(key))
                self._execute(key, mask)

    def _choose(self) -> Key:
        if len(self.ready) == 1:
            self._spun, self._reversed = 0, False
            return next(iter(self.ready))
        if self.strong and self._spun > PATIENCE:
            self._spun, self._reversed, self.strong = 0, not self._reversed, False
        return max(self.ready) if self._reversed else min(self.ready)

    def _execute(self, key: Key, mask: Mask) -> None:
        frame = self.frames[key[1]]
        plan, number = frame.plan, key[2]
        if number == len(plan.blocks):
            leave(self, frame, mask)
            return
        block = plan.blocks[number]
        tally = self.tallies[plan.function.name]
        self.frame, self.regs, self.mask = frame, frame.regs, mask
        self.steps += block.n_instructions
        self._spun += block.n_instructions
        self.work += block.work * self.work_a_step
        if self.work > self.max_work:
            self.faults.add(too_much(self))
            raise Stop
        self.blend = self._needed_by_others(frame, key)
        tally.times[number] += 1
        tally.warps[number] += mask.n_warps
        tally.lanes[number] += mask.n_lanes
        for step in block.steps:
            step(self)
        if block.end is None:
            self.push(frame, number + 1, mask)
        elif block.end_step is not None:
            self.warp_sync.arrive(key, block, mask)
        else:
            self._end(frame, number, block, mask)

    def _needed_by_others(self, frame: Frame, key: Key) -> frozenset[int]:
        """Registers of this frame that lanes elsewhere still need."""
        if not (len(self.ready) or self.warp_sync.stalled or self.barriers.waiting or len(self.frames) > 1):
            return NOTHING
        here = frame.number
        positions = {one[2] for one in (*self.ready, *self.warp_sync.stalled, *self.barriers.keys()) if one[1] == here}
        positions |= {child.back for child in frame.children.values() if child.active is not None and child.active.any}
        return frame.plan.needed_at(frozenset(positions)) if positions else NOTHING

    def push(self, frame: Frame, number: int, mask: Mask) -> None:
        """These lanes go on at this block."""
        key = (-frame.depth, frame.number, number)
        waiting = self.ready.get(key)
        if waiting is not None:
            mask = mask.joined(waiting)
            # All that are alive are one object, by which accesses that are repeated are recognized.
            mask = self.alive if mask.n_lanes == self.alive.n_lanes else mask
        self.ready[key] = mask

    def _unblock(self) -> bool:
        """Nothing can run: release what waits in vain, with a fault. False: all lanes have ended."""
        if self.warp_sync.stalled:
            self.warp_sync.give_up()
            return True
        return self.barriers.give_up()

    # Instructions that end a block.

    def _end(self, frame: Frame, number: int, block, mask: Mask) -> None:
        end = block.end
        chosen, rest = mask, None
        if end.guard is not None:
            value = reader(end.guard, np.dtype(bool), end)(self)
            if value.size == 1:
                chosen, rest = (mask, None) if value[0, 0] else (None, mask)
            else:
                chosen, rest = mask.narrowed(value), mask.narrowed(~value)
                chosen, rest = self._parted(mask, chosen, rest, end.line)
        pc = block.start + block.n_instructions - 1
        if chosen is not None:
            self._leave_block(frame, number, end, pc, chosen)
        if rest is not None:
            self.push(frame, number + 1, rest)

    def _parted(self, mask: Mask, chosen: Mask, rest: Mask, line: int) -> tuple[Mask | None, Mask | None]:
        if not rest.any:
            return mask, None
        if not chosen.any:
            return None, mask
        both = chosen.by_warp.any(2) & rest.by_warp.any(2)
        self.counts[line]["divergent_branches"] += int(both.sum()) * (self.lanes.n_blocks // len(both))
        return chosen, rest

    def _leave_block(self, frame: Frame, number: int, end, pc: int, mask: Mask) -> None:
        if end.opcode == "bra":
            self.push(frame, frame.plan.block_at[frame.plan.function.labels[end.operands[0].name]], mask)
        elif end.opcode == "brx":
            self._switch(frame, end, mask)
        elif end.opcode == "ret":
            leave(self, frame, mask)
        elif end.opcode == "exit":
            self.exit(mask)
        elif end.opcode == "trap":
            row, thread = (int(x[0]) for x in mask.index)
            self.fault("trap", pc, "the kernel stops itself (__trap)", (row, thread), mask.n_lanes)
            self.exit(mask)
        elif end.opcode == "call":
            call(self, frame, number, end, pc, mask)
        else:
            self.barriers.arrive(frame, number, end, pc, mask)

    def _switch(self, frame: Frame, end, mask: Mask) -> None:
        labels = frame.plan.function.tables[end.operands[1].name]
        index = reader(end.operands[0], np.dtype(np.uint32), end)(self)
        for i, label in enumerate(labels):
            chosen = mask.narrowed(index == i)
            if chosen.any:
                self.push(frame, frame.plan.block_at[frame.plan.function.labels[label]], chosen)

    def exit(self, mask: Mask) -> None:
        """These lanes end, however deep they are."""
        self.alive = self.alive.narrowed(~mask.array)
        frame: Frame | None = self.frame
        while frame is not None:
            if frame.active is not None:
                frame.active = frame.active.narrowed(~mask.array)
            frame = frame.caller
        self.barriers.check()
