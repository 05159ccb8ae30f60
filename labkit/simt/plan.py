"""A function made ready to run: every instruction looked up and built, block by block.

An instruction that is not in the tables is refused here, before anything runs, by its name and line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from labkit.simt import flow
from labkit.simt.instructions import TABLE
from labkit.simt.instructions.floats import flops_of
from labkit.simt.program import Function, Instruction, Negated
from labkit.simt.types import dtype_of
from labkit.simt.values import Step, reader, refuse

MEMORY_WORK = 16
"""What executing an access takes, with its counters and checks, in arithmetic instructions; measured, more or less."""
_MEMORY = frozenset({"ld", "st", "atom", "red", "cp", "ldmatrix", "mma"})


@dataclass(frozen=True)
class ReadyBlock:
    """A basic block. steps: of its instructions but the last, where that one ends it; end: that one.

    work: what executing it takes, in arithmetic instructions.
    """

    start: int
    steps: tuple[Step, ...]
    end: Instruction | None
    end_step: Step | None
    n_instructions: int
    work: int
    next: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A function that can be executed. live: by block, the registers that are needed from there on."""

    function: Function
    blocks: tuple[ReadyBlock, ...]
    live: tuple[frozenset[int], ...]
    block_at: Mapping[int, int]
    local_bytes: int
    local_offsets: Mapping[str, int]
    flops: tuple[int, ...]
    stored: frozenset[str] | None
    together: dict[frozenset[int], frozenset[int]] = field(default_factory=dict)

    def needed_at(self, positions: frozenset[int]) -> frozenset[int]:
        """The registers that lanes waiting at these blocks still need."""
        if positions not in self.together:
            self.together[positions] = frozenset().union(*(self.live[i] for i in positions))
        return self.together[positions]


class Everything:
    """Contains every register: what a guarded instruction does not execute keeps its value."""

    def __contains__(self, slot: object) -> bool:
        return True


EVERYTHING = Everything()


def make_plan(function: Function) -> Plan:
    """Build every instruction of a function. Raises `Unsupported`."""
    found = flow.blocks(function)
    ready = []
    for block in found:
        code = function.code[block.start : block.end]
        last = code[-1] if flow.ends_block(code[-1]) else None
        steps = tuple(build(one, block.start + i) for i, one in enumerate(code[:-1] if last else code))
        end_step = build(last, block.end - 1, guarded=False) if last is not None and flow.is_warp_wide(last) else None
        work = sum(MEMORY_WORK if one.opcode in _MEMORY else 1 for one in code)
        ready.append(ReadyBlock(block.start, steps, last, end_step, len(code), work, block.next))
    offsets, total = {}, 0
    for variable in function.variables:
        if variable.space == "local":
            total = -(-total // variable.align) * variable.align
            offsets[variable.name], total = total, total + variable.size
    return Plan(
        function,
        tuple(ready),
        tuple(flow.live_at_entry(function, found)),
        {block.start: i for i, block in enumerate(found)} | {len(function.code): len(found)},
        total,
        offsets,
        tuple(flops_of(one) for one in function.code),
        flow.stored_parameters(function),
    )


def build(one: Instruction, pc: int, guarded: bool = True) -> Step:
    """The step of one instruction. pc: its place in its function."""
    make: Callable[[Instruction, int], Step] | None = TABLE.get(one.opcode)
    if make is None:
        raise refuse(one)
    try:
        step = make(one, pc)
    except (IndexError, KeyError, AttributeError, TypeError, ValueError, StopIteration) as error:
        raise refuse(one, "in this form") from error
    return _guard(one, step) if one.guard is not None and guarded else step


def _guard(one: Instruction, step: Step) -> Step:
    """The step for the lanes where the guard is true."""
    guard = one.guard
    register = guard.register if isinstance(guard, Negated) else guard
    read = reader(guard, dtype_of(register.type), one)
    line, flops = one.line, flops_of(one)

    def run(m: Any) -> None:
        outer, blend = m.mask, m.blend
        inner = outer.narrowed(read(m))
        off = outer.n_lanes - inner.n_lanes
        counts = m.counts[line]
        counts["predicated_off_lanes"] += off
        counts["flops"] -= off * flops
        if inner.any:
            m.mask, m.blend = inner, EVERYTHING if off else blend
            try:
                step(m)
            finally:
                m.mask, m.blend = outer, blend

    return run
