"""Barriers of a block: who has arrived, who is let go, and what is wrong when not all threads come.

A barrier with a number of threads lets go when so many have arrived, one without when all threads of the block that
have not ended have. CUDA demands more: that all threads of the block reach the same __syncthreads(). Where they do
not, the launch goes on as the hardware would, and there is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.simt.lanes import Mask
from labkit.simt.program import Immediate, Instruction
from labkit.simt.values import reader, writer

U32 = np.dtype(np.uint32)


@dataclass(frozen=True)
class Waiting:
    """Lanes that have arrived at a barrier. key: where they go on; None: they have gone on (bar.arrive)."""

    key: tuple[int, int, int] | None
    one: Instruction
    pc: int
    mask: Mask
    name: int
    n_threads: int | None
    frame: Any
    number: int


class Barriers:
    """The barriers of one chunk."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.waiting: list[Waiting] = []

    def keys(self) -> list[tuple[int, int, int]]:
        """Where the waiting lanes go on."""
        return [one.key for one in self.waiting if one.key is not None]

    def arrive(self, frame: Any, number: int, one: Instruction, pc: int, mask: Mask) -> None:
        """These lanes reach a barrier."""
        m = self.machine
        name, n_threads = self._numbers(one)
        arrives = "arrive" in one.modifiers
        key = None if arrives else (-frame.depth, frame.number, number + 1)
        arrived = Waiting(key, one, pc, mask, name, n_threads, frame, number)
        m.counts[one.line]["barriers"] += mask.n_warps
        if not self.waiting and n_threads is None and mask.n_lanes == m.alive.n_lanes and key is not None:
            self._release([arrived], None)
            return
        self.waiting.append(arrived)
        if arrives:
            m.push(frame, number + 1, mask)
        self.check()

    def _numbers(self, one: Instruction) -> tuple[int, int | None]:
        numbers = list(one.operands[1:-1] if "red" in one.modifiers else one.operands)
        values = []
        for operand in numbers:
            value = reader(operand, U32, one)(self.machine)
            values.append(int(value.flat[0]) if isinstance(operand, Immediate) else int(self._active(value)))
        return values[0] if values else 0, values[1] if len(values) > 1 else None

    def _active(self, value: np.ndarray) -> int:
        m = self.machine
        rows, threads = m.mask.index
        return np.broadcast_to(value, m.mask.full.shape)[rows[0], threads[0]]

    def check(self) -> None:
        """Let go of every block whose barrier is complete."""
        m = self.machine
        alive = m.alive.by_block
        for name in {one.name for one in self.waiting}:
            group = [one for one in self.waiting if one.name == name]
            arrived = sum(one.mask.by_block for one in group)
            wanted = alive if group[0].n_threads is None else np.full_like(alive, group[0].n_threads)
            complete = (arrived >= wanted) & (arrived > 0)
            if complete.any():
                self._let_go(group, complete)

    def _let_go(self, group: list[Waiting], blocks: np.ndarray) -> None:
        chosen, rest = [], []
        for one in group:
            inside, outside = one.mask.narrowed(blocks[:, None]), one.mask.narrowed(~blocks[:, None])
            if inside.any:
                chosen.append(_with(one, inside))
            if outside.any:
                rest.append(_with(one, outside))
        self.waiting = [one for one in self.waiting if one not in group] + rest
        self._release(chosen, blocks)

    def _release(self, group: list[Waiting], blocks: np.ndarray | None) -> None:
        m = self.machine
        first = group[0]
        if first.n_threads is None or first.n_threads >= m.lanes.n_used:
            self._compare(group, blocks)
            m.shadow.barrier(blocks)
        else:
            members = np.any([one.mask.full for one in group], axis=0)
            m.shadow.partial_barrier(members)
        if "red" in first.one.modifiers:
            self._reduce(group)
        for one in group:
            if one.key is not None:
                m.push(one.frame, one.number + 1, one.mask)

    def _compare(self, group: list[Waiting], blocks: np.ndarray | None) -> None:
        """Faults of a barrier for the whole block that its threads reach at several places, or that some have left."""
        m = self.machine
        first = group[0]
        ended = m.lanes.n_used - m.alive.by_block
        ended = ended if blocks is None else ended * blocks
        lane = tuple(int(x[0]) for x in first.mask.index)
        frame, m.frame = m.frame, first.frame
        if ended.any():
            row = int(np.argmax(ended > 0))
            text = f"{ended[row]:,} of the block's {m.lanes.n_used:,} threads have ended without reaching this barrier"
            m.fault("barrier", first.pc, text, lane, first.mask.n_lanes)
        places = sorted({one.pc for one in group})
        if len(places) > 1 and first.n_threads is None:
            lines = sorted({one.one.line for one in group})
            text = f"threads of one block wait at different barriers, of lines {', '.join(map(str, lines))}"
            both = [one.mask.by_block > 0 for one in group]
            if np.any(np.sum(both, axis=0) > 1):
                m.fault("barrier", first.pc, text, lane, first.mask.n_lanes)
        m.frame = frame

    def _reduce(self, group: list[Waiting]) -> None:
        """bar.red: every thread learns how many, whether all or whether any of the block's predicates are true."""
        m = self.machine
        total = np.zeros((m.lanes.n_blocks, 1), np.int64)
        joined = np.zeros((m.lanes.n_blocks, 1), np.int64)
        for one in group:
            value = reader(one.one.operands[-1], np.dtype(bool), one.one)
            m.regs = one.frame.regs
            total += (one.mask.full & value(m)).sum(1, keepdims=True)
            joined += one.mask.full.sum(1, keepdims=True)
        for one in group:
            kind = one.one.modifiers[-2]
            result = {"popc": total.astype(np.uint32), "and": total == joined, "or": total > 0}[kind]
            m.regs, m.mask, blend = one.frame.regs, one.mask, m.blend
            m.blend = _ALL
            writer(one.one.operands[0], one.one)(m, result)
            m.blend = blend

    def give_up(self) -> bool:
        """Nothing else can run: end the lanes that wait in vain. False: none wait."""
        if not any(one.key is not None for one in self.waiting):
            return False
        m = self.machine
        first = next(one for one in self.waiting if one.key is not None)
        row, thread = (int(x[0]) for x in first.mask.index)
        arrived = sum(one.mask.by_block[row] for one in self.waiting if one.name == first.name)
        wanted = m.alive.by_block[row] if first.n_threads is None else first.n_threads
        m.frame = first.frame
        text = f"{arrived:,} of {wanted:,} threads reach barrier {first.name}; the others wait elsewhere"
        m.fault("barrier", first.pc, text, (row, thread), first.mask.n_lanes)
        self.waiting.remove(first)
        m.exit(first.mask)
        return True


def _with(one: Waiting, mask: Mask) -> Waiting:
    return Waiting(one.key, one.one, one.pc, mask, one.name, one.n_threads, one.frame, one.number)


class _All:
    def __contains__(self, slot: object) -> bool:
        return True


_ALL = _All()
