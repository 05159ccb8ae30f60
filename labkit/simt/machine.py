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
from dataclasses import dataclass, field

import numpy as np

from labkit.simt.barriers import Barriers
from labkit.simt.faults import Fault, FaultLog
from labkit.simt.lanes import Lanes, Mask
from labkit.simt.memory import Memory
from labkit.simt.plan import EVERYTHING, Plan
from labkit.simt.program import Group, Immediate, Register, Special, Symbol
from labkit.simt.shadow import Shadow
from labkit.simt.spaces import Local, Shared
from labkit.simt.types import dtype_of
from labkit.simt.values import constant, reader, resize
from labkit.simt.watching import Watch

Key = tuple[int, int, int]
"""-depth of the frame, its number, the block: the least runs first."""

EVERY_LANE = np.uint64(0xFFFFFFFF)
PATIENCE = 256
"""Steps that one group may spin on memory while others wait."""
STEP_WORK = 4096
"""What a step takes beside its lanes, in lanes: one of a single lane takes as long as one of some thousand."""
MAX_DEPTH = 64
MAX_LOCAL_BYTES = 1 << 26
NOTHING: frozenset[int] = frozenset()


class Stop(Exception):
    """The launch ends here: its fault is in the log."""


@dataclass
class Frame:
    """One call of a function: its registers and where its lanes go back to. active: lanes that have not returned."""

    number: int
    plan: Plan
    depth: int
    caller: Frame | None
    back: int
    local_base: int
    active: Mask | None
    regs: list[np.ndarray] = field(default_factory=list)
    cells: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    children: dict[int, Frame] = field(default_factory=dict)
    results: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.regs = [np.zeros((1, 1), dtype_of(one.type)) for one in self.plan.function.registers]

    def set_cell(self, name: str, offset: int, value: np.ndarray, mask: Mask) -> None:
        """Store a piece of a call's argument or result for these lanes."""
        old = self.cells.get((name, offset))
        if old is not None and not mask.is_all:
            value = np.where(mask.array, value, resize(old, value.dtype))
        self.cells[name, offset] = value

    def copy_cells(self, other: Frame, source: str, target: str, mask: Mask) -> None:
        """Copy all pieces of an argument or result from another frame."""
        for (name, offset), value in list(other.cells.items()):
            if name == source:
                self.set_cell(target, offset, value, mask)


@dataclass
class Tally:
    """How often each block of a function ran: times, warps and lanes, by block number."""

    times: list[int]
    warps: list[int]
    lanes: list[int]


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
        self.barriers = Barriers(self)
        self.alive = lanes.everyone
        self.tallies = {name: Tally(*([0] * (len(plan.blocks) + 1) for _ in range(3))) for name, plan in plans.items()}
        self.steps, self.work = 0, 0
        self.work_a_step = lanes.n_blocks * lanes.n_threads + STEP_WORK
        self.strong = False
        self.carry = np.zeros((1, 1), bool)
        self.watch: Watch | None = None
        self.accesses: dict[object, tuple] = {}
        self.published = published
        self.acquired = acquired
        self.shared_names = shared_names
        self.frames: list[Frame] = []
        first = self._new_frame(plans[entry], None, 0)
        self.frame, self.regs, self.mask = first, first.regs, self.alive
        self.blend: object = NOTHING
        self.ready: dict[Key, Mask] = {(0, 0, 0): self.alive}
        self.stalled: dict[Key, Mask] = {}
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
                if key in self.stalled:
                    mask = mask.joined(self.stalled.pop(key))
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
            self.leave(frame, mask)
            return
        block = plan.blocks[number]
        tally = self.tallies[plan.function.name]
        self.frame, self.regs, self.mask = frame, frame.regs, mask
        self.steps += block.n_instructions
        self._spun += block.n_instructions
        self.work += block.work * self.work_a_step
        if self.work > self.max_work:
            self._never_ends()
        self.blend = self._needed_by_others(frame, key)
        tally.times[number] += 1
        tally.warps[number] += mask.n_warps
        tally.lanes[number] += mask.n_lanes
        for step in block.steps:
            step(self)
        if block.end is None:
            self.push(frame, number + 1, mask)
        elif block.end_step is not None:
            self._together(key, block, mask)
        else:
            self._end(frame, number, block, mask)

    def _needed_by_others(self, frame: Frame, key: Key) -> frozenset[int]:
        """Registers of this frame that lanes elsewhere still need."""
        if not (len(self.ready) or self.stalled or self.barriers.waiting or len(self.frames) > 1):
            return NOTHING
        here = frame.number
        positions = {one[2] for one in (*self.ready, *self.stalled, *self.barriers.keys()) if one[1] == here}
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

    def _together(self, key: Key, block, mask: Mask) -> None:
        """An instruction that a warp executes together: lanes wait until all that it names are there."""
        frame, end = self.frames[key[1]], block.end
        self._refuse_outsiders(block, mask)
        if mask.array is not self.alive.array and mask.n_lanes != self.alive.n_lanes:
            missing = self._missing(end, mask)
            if missing.any():
                late = mask.narrowed(np.repeat(missing, 32, axis=1))
                self.stalled[key] = late
                mask = mask.narrowed(~np.repeat(missing, 32, axis=1))
                if not mask.any:
                    return
        self._run_together(frame, key[2], block, mask)

    def _run_together(self, frame: Frame, number: int, block, mask: Mask) -> None:
        self.frame, self.regs, self.mask = frame, frame.regs, mask
        self.blend = EVERYTHING if mask is not self.alive else self.blend
        guard = block.end.guard
        if guard is None:
            block.end_step(self)
        else:
            self.mask, self.blend = mask.narrowed(reader(guard, np.dtype(bool), block.end)(self)), EVERYTHING
            if self.mask.any:
                block.end_step(self)
        self.push(frame, number + 1, mask)

    def _named(self, end) -> np.ndarray | None:
        """The lanes that an instruction of a warp names, as bits of each lane's own mask; None where it names none."""
        named = end.operands[-1] if end.operands and end.opcode not in ("mma", "ldmatrix", "movmatrix") else None
        if not isinstance(named, Register | Immediate | Special):
            return None
        return reader(named, np.dtype(np.uint32), end)(self).astype(np.uint64)

    def _refuse_outsiders(self, block, mask: Mask) -> None:
        """A fault of lanes that execute the instruction though its mask does not name them."""
        value = self._named(block.end)
        if value is None or (value == EVERY_LANE).all():
            return
        guard = block.end.guard
        executing = mask if guard is None else mask.narrowed(reader(guard, np.dtype(bool), block.end)(self))
        lane = np.arange(self.lanes.n_threads, dtype=np.uint64) % np.uint64(32)
        bad = executing.full & ((value >> lane) & np.uint64(1) == 0)
        if not bad.any():
            return
        row, thread = (int(x[0]) for x in np.nonzero(bad))
        text = f"{block.end.name} is executed by lane {thread % 32} of the warp, which its mask does not name"
        pc = block.start + block.n_instructions - 1
        self.fault("warp synchronization", pc, text, (row, thread), int(bad.sum()))

    def _missing(self, end, mask: Mask) -> np.ndarray:
        """[rows, n_warps] whether lanes that the instruction names have not arrived, though they are alive."""
        members = EVERY_LANE
        value = self._named(end)
        if value is not None:
            if value.size == 1:
                members = value[0, 0]
            else:
                whole = np.where(mask.full, value, np.uint64(0)).reshape(self.lanes.n_blocks, -1, 32)
                members = np.bitwise_or.reduce(whole, axis=2)
        present = mask.bits
        return (present != 0) & ((members & self.alive.bits & ~present) != 0)

    def _unblock(self) -> bool:
        """Nothing can run: release what waits in vain, with a fault. False: all lanes have ended."""
        if self.stalled:
            key, mask = self.stalled.popitem()
            frame = self.frames[key[1]]
            block = frame.plan.blocks[key[2]]
            self.frame = frame
            pc = block.start + block.n_instructions - 1
            row, thread = (int(x[0]) for x in mask.index)
            text = f"{block.end.name} names lanes of the warp that never arrive: {mask.n_lanes:,} wait for them"
            self.fault("warp synchronization", pc, text, (row, thread), mask.n_lanes)
            self._run_together(frame, key[2], block, mask)
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
            self.leave(frame, mask)
        elif end.opcode == "exit":
            self.exit(mask)
        elif end.opcode == "trap":
            row, thread = (int(x[0]) for x in mask.index)
            self.fault("trap", pc, "the kernel stops itself (__trap)", (row, thread), mask.n_lanes)
            self.exit(mask)
        elif end.opcode == "call":
            self._call(frame, number, end, pc, mask)
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

    def leave(self, frame: Frame, mask: Mask) -> None:
        """These lanes return from a function, or end where it is the kernel."""
        self.frame = frame
        if frame.caller is None:
            self.exit(mask)
            return
        frame.active = frame.active.narrowed(~mask.array)
        for formal, actual in zip(frame.plan.function.results, frame.results, strict=True):
            frame.caller.copy_cells(frame, formal.name, actual, mask)
        self.push(frame.caller, frame.back, mask)

    def _call(self, frame: Frame, number: int, end, pc: int, mask: Mask) -> None:
        groups = [one.items for one in end.operands if isinstance(one, Group)]
        place = next(i for i, one in enumerate(end.operands) if isinstance(one, Symbol | Register))
        callee = end.operands[place]
        arguments = (
            groups[-1] if groups and isinstance(end.operands[-1], Group) and place < len(end.operands) - 1 else ()
        )
        results = groups[0] if isinstance(end.operands[0], Group) and place > 0 else ()
        name = callee.name
        if name == "__assertfail":
            row, thread = (int(x[0]) for x in mask.index)
            self.fault("assertion", pc, "an assert is false", (row, thread), mask.n_lanes)
            self.exit(mask)
            return
        if name == "vprintf":
            for item in results:
                frame.set_cell(item.name, 0, constant(0, np.dtype(np.uint32)), mask)
            self.push(frame, number + 1, mask)
            return
        plan = self.plans[name]
        child = frame.children.get(pc)
        if child is None:
            if frame.depth + 1 > MAX_DEPTH:
                row, thread = (int(x[0]) for x in mask.index)
                text = f"calls are nested more than {MAX_DEPTH} deep: does the recursion end?"
                self.fault("call stack", pc, text, (row, thread), mask.n_lanes)
                raise Stop
            child = self._new_frame(plan, frame, number + 1)
            frame.children[pc] = child
        child.active = mask if child.active is None else child.active.joined(mask)
        for formal, actual in zip(plan.function.parameters, arguments, strict=True):
            child.copy_cells(frame, actual.name, formal.name, mask)
        child.results = tuple(item.name for item in results)
        self.push(child, 0, mask)

    def _new_frame(self, plan: Plan, caller: Frame | None, back: int) -> Frame:
        base = 0 if caller is None else -(-(caller.local_base + caller.plan.local_bytes) // 16) * 16
        if (base + plan.local_bytes) * self.local.n_lanes > MAX_LOCAL_BYTES:
            self.fault("call stack", 0, f"local memory of {base + plan.local_bytes:,} bytes a thread is too much")
            raise Stop
        self.local.enlarge(base + plan.local_bytes)
        frame = Frame(len(self.frames), plan, 0 if caller is None else caller.depth + 1, caller, back, base, None)
        self.frames.append(frame)
        return frame

    def _never_ends(self) -> None:
        function, number = max(
            ((name, i) for name, tally in self.tallies.items() for i in range(len(tally.times))),
            key=lambda one: self.tallies[one[0]].times[one[1]],
        )
        plan = self.plans[function]
        block = plan.blocks[number]
        lines = [one.line for one in plan.function.code[block.start : block.start + block.n_instructions] if one.line]
        times = max(self.tallies[function].times)
        text = (
            f"still running after {self.work:,} units of work (threads × instructions); this line ran {times:,} times. "
            "If the loop does end, launch it on less data or with a larger max_work"
        )
        self.faults.add(Fault("never ends", lines[-1] if lines else 0, text, count=1))
        raise Stop
