"""What the lanes of a warp tell one another: shuffles, votes, matches, reductions.

The machine runs them once all lanes that the instruction names have arrived.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.lanes import WARP
from labkit.simt.program import Instruction, Pair
from labkit.simt.values import Step, reader, refuse, type_of, writer

BOOL, U32, I32, U64 = np.dtype("?"), np.dtype("u4"), np.dtype("i4"), np.dtype("u8")


def by_warp(m: Any, value: np.ndarray) -> np.ndarray:
    """[rows, n_warps, 32], one row where all blocks agree."""
    lanes = m.lanes
    return np.broadcast_to(value, (value.shape[0], lanes.n_threads)).reshape(value.shape[0], lanes.n_warps, WARP)


def flat(m: Any, value: np.ndarray) -> np.ndarray:
    """[rows, n_threads] again; [rows, n_warps, 1] is spread over its warp."""
    whole = np.broadcast_to(value, (*value.shape[:2], WARP))
    return whole.reshape(len(value), m.lanes.n_threads)


def shuffle(one: Instruction, pc: int) -> Step:
    """shfl.sync.{up,down,bfly,idx}.b32 d|p, a, b, c, mask: c holds the segment's mask and clamp."""
    if len(one.operands) != 5:
        raise refuse(one)
    kind = next(name for name in one.modifiers if name in ("up", "down", "bfly", "idx"))
    target = one.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    put, put_valid = writer(first, one), writer(second, one)
    a, b, c = (reader(operand, U32, one) for operand in one.operands[1:4])
    lane = np.arange(WARP, dtype=np.int64)

    def run(m: Any) -> None:
        value, offset, bounds = by_warp(m, a(m)), by_warp(m, b(m)).astype(np.int64), by_warp(m, c(m)).astype(np.int64)
        segment = (bounds >> 8) & 31
        clamp, offset = bounds & 31, offset & 31
        bottom = lane & segment
        top = bottom | (clamp & ~segment)
        if kind == "up":
            source = lane - offset
            valid = source >= top
        elif kind == "down":
            source = lane + offset
            valid = source <= top
        elif kind == "bfly":
            source = lane ^ offset
            valid = source <= top
        else:
            source = bottom | (offset & ~segment)
            valid = source <= top
        source = np.where(valid, source, lane)
        shape = np.broadcast_shapes(value.shape, source.shape)
        source, valid = np.broadcast_to(source, shape), np.broadcast_to(valid, shape)
        active = np.broadcast_to(m.mask.by_warp, (max(shape[0], len(m.mask.by_warp)), *shape[1:]))
        if not m.mask.is_all:
            _report_inactive(m, pc, one, source, active)
        put(m, flat(m, np.take_along_axis(np.broadcast_to(value, shape), source, axis=2)))
        put_valid(m, flat(m, valid))

    return run


def _report_inactive(m: Any, pc: int, one: Instruction, source: np.ndarray, active: np.ndarray) -> None:
    """A lane that reads from one that takes no part gets an undefined value."""
    source = np.broadcast_to(source, active.shape)
    bad = active & ~np.take_along_axis(active, source, axis=2)
    if not bad.any():
        return
    row, warp, lane = (int(x[0]) for x in np.nonzero(bad))
    text = f"{one.name} reads from lane {int(source[row, warp, lane])} of the warp, which takes no part"
    m.fault("warp synchronization", pc, text, (row, warp * WARP + lane), int(bad.sum()))


def vote(one: Instruction, pc: int) -> Step:
    """vote.sync.{all,any,uni}.pred, vote.sync.ballot.b32."""
    kind = next(name for name in one.modifiers if name in ("all", "any", "uni", "ballot"))
    put, a = writer(one.operands[0], one), reader(one.operands[1], BOOL, one)
    weights = np.uint64(1) << np.arange(WARP, dtype=np.uint64)

    def run(m: Any) -> None:
        value, active = by_warp(m, a(m)), m.mask.by_warp
        some, every = (value & active).any(2, keepdims=True), (value | ~active).all(2, keepdims=True)
        if kind == "ballot":
            put(m, flat(m, ((value & active) * weights).sum(2, keepdims=True, dtype=U64).astype(U32)))
        else:
            put(m, flat(m, {"all": every, "any": some, "uni": every | ~some}[kind]))

    return run


def active_mask(one: Instruction, pc: int) -> Step:
    """activemask: the lanes of the warp that run this together."""
    put = writer(one.operands[0], one)
    return lambda m: put(m, flat(m, m.mask.bits[:, :, None].astype(U32)))


def match(one: Instruction, pc: int) -> Step:
    """match.{any,all}.sync: which lanes of the warp have the same value."""
    dtype, every = type_of(one), "all" in one.modifiers
    target = one.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    put, put_all = writer(first, one), writer(second, one)
    a = reader(one.operands[1], dtype, one)
    weights = np.uint64(1) << np.arange(WARP, dtype=np.uint64)

    def run(m: Any) -> None:
        value, active = by_warp(m, a(m)), m.mask.by_warp
        same = (value[:, :, :, None] == value[:, :, None, :]) & active[:, :, None, :]
        bits = (same * weights).sum(3, dtype=U64).astype(U32)
        if every:
            agree = (same | ~active[:, :, None, :]).all(3)
            bits = np.where(agree, bits, np.uint32(0))
            put_all(m, flat(m, agree))
        put(m, flat(m, bits))

    return run


def reduce(one: Instruction, pc: int) -> Step:
    """redux.sync: the sum, minimum, maximum, and, or, xor of the warp's lanes."""
    dtype = type_of(one)
    kind = next(name for name in one.modifiers if name in ("add", "min", "max", "and", "or", "xor"))
    if dtype.kind == "f":
        raise refuse(one)
    put, a = writer(one.operands[0], one), reader(one.operands[1], dtype, one)
    limits = np.iinfo(dtype)
    function, neutral = {
        "add": (np.add, 0),
        "min": (np.minimum, limits.max),
        "max": (np.maximum, limits.min),
        "and": (np.bitwise_and, -1 if dtype.kind == "i" else limits.max),
        "or": (np.bitwise_or, 0),
        "xor": (np.bitwise_xor, 0),
    }[kind]

    def run(m: Any) -> None:
        value = np.where(m.mask.by_warp, by_warp(m, a(m)), dtype.type(neutral))
        put(m, flat(m, function.reduce(value, axis=2, keepdims=True, dtype=dtype)))

    return run


TABLE = {"shfl": shuffle, "vote": vote, "activemask": active_mask, "match": match, "redux": reduce}
