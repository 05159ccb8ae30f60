"""cp.async: copies from global to shared memory that a thread starts and waits for later.

The bytes arrive at once here. That a kernel forgets to wait for them is noticed by `labkit.simt.copies`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt import global_access, shared_access
from labkit.simt.copies import copies_of
from labkit.simt.instructions.loads import base_of
from labkit.simt.program import Immediate, Instruction
from labkit.simt.values import Step, address_reader, reader, refuse

WORDS = {4: (np.dtype("u4"), 1), 8: (np.dtype("u8"), 1), 16: (np.dtype("u4"), 4)}
U32 = np.dtype("u4")


def _commit(one: Instruction) -> Step:
    return lambda m: copies_of(m).commit(m.mask)


def _wait(one: Instruction) -> Step:
    n_left = one.operands[0]
    if not isinstance(n_left, Immediate) or not isinstance(n_left.value, int):
        raise refuse(one)
    return lambda m: copies_of(m).wait(n_left.value, m.mask)


def _wait_for_all(one: Instruction) -> Step:
    def run(m: Any) -> None:
        copies_of(m).commit(m.mask)
        copies_of(m).wait(0, m.mask)

    return run


WAITS = {"commit_group": _commit, "wait_group": _wait, "wait_all": _wait_for_all}


def copy(one: Instruction, pc: int) -> Step:
    """cp.async.{ca,cg}.shared.global [to], [from], size[, source size]; commit_group; wait_group; wait_all."""
    if one.modifiers[0] != "async" or "bulk" in one.modifiers or "mbarrier" in one.modifiers:
        raise refuse(one)
    if one.modifiers[1] in WAITS:
        return WAITS[one.modifiers[1]](one)
    size = one.operands[2]
    if not isinstance(size, Immediate) or size.value not in WORDS:
        raise refuse(one)
    dtype, width = WORDS[size.value]
    target, source = address_reader(one.operands[0], one), address_reader(one.operands[1], one)
    used = reader(one.operands[3], U32, one) if len(one.operands) > 3 else None
    who, base, line = object(), base_of(one, 0), one.line

    def run(m: Any) -> None:
        outer, addresses, to = m.mask, source(m), target(m)
        values = [np.zeros((1, 1), dtype) for _ in range(width)]
        m.mask = outer if used is None else outer.narrowed(used(m) > 0)
        if m.mask.any:
            values = global_access.load_global(m, pc, line, addresses, dtype, width, False, who)
        m.mask = outer
        if used is not None:
            values = [
                np.where(used(m) >= (i + 1) * dtype.itemsize, value, dtype.type(0)) for i, value in enumerate(values)
            ]
        shared_access.store_shared(m, pc, line, to, values, who, base(m), copies=True)
        copies_of(m).begin(to, size.value, m.mask)

    return run


TABLE = {"cp": copy}
