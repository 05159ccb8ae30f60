"""atom and red: read, change and write back as one, in the order of the lanes.

A GPU's order differs from run to run, so that a sum of floats may differ there in its last bits and is the same here
each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.simt import counters, exact, global_access, lane_checks, shared_access
from labkit.simt.program import Instruction, Vector
from labkit.simt.types import dtype_of
from labkit.simt.values import Step, address_reader, reader, refuse, writer

F16, U16, U32 = np.dtype("f2"), np.dtype("u2"), np.dtype("u4")
ORDER = {"relaxed", "acquire", "release", "acq_rel", "gpu", "cta", "sys", "noftz", "cluster"}
SPACES = {"global", "shared"}
Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _increment(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _add_halves(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Packed pairs of float16."""
    low = (old & 0xFFFF).astype(U16).view(F16) + (value & 0xFFFF).astype(U16).view(F16)
    high = (old >> 16).astype(U16).view(F16) + (value >> 16).astype(U16).view(F16)
    return low.view(U16).astype(U32) | (high.view(U16).astype(U32) << np.uint32(16))


def _add_bf16(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Of the bits: the sum of two bfloat16 in float32 is wide enough that rounding it again changes nothing."""
    return exact.round_bf16(exact.bf16_to_f32(old) + exact.bf16_to_f32(value))


def _add_bf16_pairs(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Packed pairs of bfloat16."""
    low = _add_bf16((old & 0xFFFF).astype(U16), (value & 0xFFFF).astype(U16))
    high = _add_bf16((old >> 16).astype(U16), (value >> 16).astype(U16))
    return low.astype(U32) | (high.astype(U32) << np.uint32(16))


PACKED: dict[str, Combine] = {"f16x2": _add_halves, "bf16": _add_bf16, "bf16x2": _add_bf16_pairs}
"""Sums of what numpy has no type for."""

COMBINE: dict[str, Combine] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, value: value,
    "inc": _increment,
    "dec": _decrement,
}


def update(view: np.ndarray, index: np.ndarray, values: np.ndarray, combine: Combine) -> np.ndarray:
    """view[index] = combine(view[index], values), lane after lane. Returns what each lane found.

    index, values: [n]. Lanes of one address follow one another; the first lanes of all addresses are done at once,
    then the second ones, or address after address where there are fewer of these.
    """
    order = np.argsort(index, kind="stable")
    place, value = index[order], values[order]
    first = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
    lengths = np.diff(np.append(first, len(place)))
    old = np.empty_like(value)
    if len(first) < lengths.max() and isinstance(combine, np.ufunc):
        for start, length in zip(first, lengths, strict=True):
            chain = np.concatenate((view[place[start] : place[start] + 1], value[start : start + length]))
            steps = combine.accumulate(chain, dtype=view.dtype)
            old[start : start + length] = steps[:-1]
            view[place[start]] = steps[-1]
    else:
        for turn in range(int(lengths.max())):
            at = first[lengths > turn] + turn
            found = view[place[at]]
            old[at] = found
            view[place[at]] = combine(found, value[at])
    result = np.empty_like(old)
    result[order] = old
    return result


def compare_and_swap(view: np.ndarray, index: np.ndarray, expected: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where view[index] is what a lane expects, it becomes the lane's value. Returns what each lane found."""
    order = np.argsort(index, kind="stable")
    place = index[order]
    starts = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
    old = np.empty_like(values)
    for start, end in zip(starts, np.append(starts[1:], len(place)), strict=True):
        lanes, current = order[start:end], view[place[start]]
        while len(lanes):
            hits = np.flatnonzero(expected[lanes] == current)
            if not len(hits):
                old[lanes] = current
                break
            old[lanes[: hits[0] + 1]] = current
            current, lanes = values[lanes[hits[0]]], lanes[hits[0] + 1 :]
        view[place[start]] = current
    return old


def atomic(one: Instruction, pc: int) -> Step:
    """atom.space.op.type d, [a], b[, c]; red.space.op.type [a], b."""
    names = [name for name in one.modifiers if name not in ORDER and name not in SPACES]
    space = next((name for name in one.modifiers if name in SPACES), "generic")
    operands = one.operands if one.opcode == "atom" else (None, *one.operands)
    if len(names) != 2 or any(isinstance(operand, Vector) for operand in operands):
        raise refuse(one)
    operation, kind = names
    if (operation != "cas" and operation not in COMBINE) or (kind[0] == "f" and operation != "add"):
        raise refuse(one)
    if kind in PACKED and operation != "add":
        raise refuse(one)
    dtype = dtype_of(kind)
    combine = PACKED.get(kind) or COMBINE.get(operation)
    address = address_reader(operands[1], one)
    value = reader(operands[2], dtype, one)
    swap = reader(operands[3], dtype, one) if operation == "cas" else None
    put = writer(operands[0], one)
    who = object()

    def change(m: Any, view: np.ndarray, index: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        values = np.broadcast_to(value(m), m.mask.full.shape)[lanes]
        if swap is None:
            return update(view, index, values, combine)
        return compare_and_swap(view, index, values, np.broadcast_to(swap(m), m.mask.full.shape)[lanes])

    def run(m: Any) -> None:
        m.strong = True
        whole, outer = m.mask.full.shape, m.mask
        old = np.zeros(whole, dtype)
        addresses = address(m)
        parts = [(space, addresses, m.mask)] if space != "generic" else lane_checks.by_space(m, addresses)
        for where, inside, mask in parts:
            m.mask = mask
            if where == "local":
                raise refuse(one, "on local memory")
            (_on_global if where == "global" else _on_shared)(m, one, pc, inside, dtype, old, change, who)
        m.mask = outer
        put(m, old)

    return run


def _on_global(
    m: Any, one: Instruction, pc: int, addresses: np.ndarray, dtype: np.dtype, old: np.ndarray, change: Any, who: object
) -> None:
    counts, mask = m.counts[one.line], m.mask
    counts["global_atomic_requests"] += mask.n_warps
    counts["global_atomic_lanes"] += mask.n_lanes
    counts["global_atomic_sectors"] += counters.sectors(addresses, mask)
    counts["atomic_conflicts"] += counters.conflicts(addresses, mask)
    found = global_access.GlobalAccess(m, pc, addresses, dtype.itemsize, "atom", who)
    for part in found.parts:
        chosen = mask.full
        for further in (part.chosen, found.needed):
            chosen = chosen if further is None else chosen & further
        index = np.broadcast_to((found.addresses - part.region.base) // dtype.itemsize, old.shape)[chosen]
        old[chosen] = change(m, part.region.view(dtype), index, chosen)
    m.touched_atomically()


def _on_shared(
    m: Any, one: Instruction, pc: int, offsets: np.ndarray, dtype: np.dtype, old: np.ndarray, change: Any, who: object
) -> None:
    counts, mask = m.counts[one.line], m.mask
    counts["shared_atomic_requests"] += mask.n_warps
    counts["shared_atomic_lanes"] += mask.n_lanes
    counts["atomic_conflicts"] += counters.conflicts(offsets, mask)
    found = shared_access.SharedAccess(m, pc, offsets, dtype.itemsize, "atom")
    if not found.mask.any:
        return
    places, rows, threads = shared_access.shadow_lanes(m, found)
    known = m.shadow.known(places, rows)
    if not known.all():
        at = int(np.argmin(known))
        lane = int(rows[at]), int(threads[at])
        text = f"updates {m.name_shared(int(places[at]))}, which no thread has written"
        m.fault("uninitialized shared memory", pc, text, lane)
    race = m.shadow.write(places, rows, threads, dtype.itemsize, pc, None, atomic=True)
    found.report(m, pc, race, "updates")
    chosen = found.mask.full
    view = m.shared.data.view(dtype)
    row = np.broadcast_to(m.lanes.rows, old.shape)[chosen]
    index = np.broadcast_to(found.offsets // dtype.itemsize, old.shape)[chosen] + row * view.shape[1]
    old[chosen] = change(m, view.reshape(-1), index, chosen)


TABLE = {"atom": atomic, "red": atomic}
