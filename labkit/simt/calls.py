"""Calls of device functions and returns from them, and the calls that CUDA itself offers: printf and assert."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.faults import Stop
from labkit.simt.frames import Frame
from labkit.simt.lanes import Mask
from labkit.simt.plan import Plan
from labkit.simt.printing import print_lanes
from labkit.simt.program import Group, Instruction, Register, Symbol
from labkit.simt.values import constant

MAX_DEPTH = 64
MAX_LOCAL_BYTES = 1 << 26


def leave(m: Any, frame: Frame, mask: Mask) -> None:
    """These lanes return from a function, or end where it is the kernel."""
    m.frame = frame
    if frame.caller is None:
        m.exit(mask)
        return
    frame.active = frame.active.narrowed(~mask.array)
    for formal, actual in zip(frame.plan.function.results, frame.results, strict=True):
        frame.caller.copy_cells(frame, formal.name, actual, mask)
    m.push(frame.caller, frame.back, mask)


def call(m: Any, frame: Frame, number: int, end: Instruction, pc: int, mask: Mask) -> None:
    groups = [one.items for one in end.operands if isinstance(one, Group)]
    place = next(i for i, one in enumerate(end.operands) if isinstance(one, Symbol | Register))
    callee = end.operands[place]
    arguments = groups[-1] if groups and isinstance(end.operands[-1], Group) and place < len(end.operands) - 1 else ()
    results = groups[0] if isinstance(end.operands[0], Group) and place > 0 else ()
    name = callee.name
    if name == "__assertfail":
        row, thread = (int(x[0]) for x in mask.index)
        m.fault("assertion", pc, "an assert is false", (row, thread), mask.n_lanes)
        m.exit(mask)
        return
    if name == "vprintf":
        print_lanes(m, *(frame.cells[item.name, 0] for item in arguments), mask)
        for item in results:
            frame.set_cell(item.name, 0, constant(1, np.dtype(np.uint32)), mask)
        m.push(frame, number + 1, mask)
        return
    plan = m.plans[name]
    child = frame.children.get(pc)
    if child is None:
        if frame.depth + 1 > MAX_DEPTH:
            row, thread = (int(x[0]) for x in mask.index)
            text = f"calls are nested more than {MAX_DEPTH} deep: does the recursion end?"
            m.fault("call stack", pc, text, (row, thread), mask.n_lanes)
            raise Stop
        child = new_frame(m, plan, frame, number + 1)
        frame.children[pc] = child
    child.active = mask if child.active is None else child.active.joined(mask)
    for formal, actual in zip(plan.function.parameters, arguments, strict=True):
        child.copy_cells(frame, actual.name, formal.name, mask)
    child.results = tuple(item.name for item in results)
    m.push(child, 0, mask)


def new_frame(m: Any, plan: Plan, caller: Frame | None, back: int) -> Frame:
    base = 0 if caller is None else -(-(caller.local_base + caller.plan.local_bytes) // 16) * 16
    if (base + plan.local_bytes) * m.local.n_lanes > MAX_LOCAL_BYTES:
        m.fault("call stack", 0, f"local memory of {base + plan.local_bytes:,} bytes a thread is too much")
        raise Stop
    m.local.enlarge(base + plan.local_bytes)
    frame = Frame(len(m.frames), plan, 0 if caller is None else caller.depth + 1, caller, back, base, None)
    m.frames.append(frame)
    return frame
