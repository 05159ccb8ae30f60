"""Copies between registers: mov, also of packed words, address conversions, and what only hints at the hardware."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.memory import LOCAL_WINDOW, SHARED_WINDOW
from labkit.simt.program import Instruction, Vector
from labkit.simt.types import bits_of
from labkit.simt.values import Step, reader, refuse, type_of, writer

I64, U64 = np.dtype("i8"), np.dtype("u8")
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "global": 0, "const": 0, "param": 0}


def move(one: Instruction, pc: int) -> Step:
    """mov; {a, b} packs small registers into a large one, or takes it apart."""
    dtype = type_of(one)
    target, source = one.operands[:2]
    if isinstance(source, Vector):
        return _pack(one, dtype, source)
    if isinstance(target, Vector):
        return _unpack(one, dtype, target)
    put, a = writer(target, one), reader(source, dtype, one)
    return lambda m: put(m, a(m))


def _pack(one: Instruction, dtype: np.dtype, source: Vector) -> Step:
    bits = 8 * dtype.itemsize // len(source.items)
    piece = np.dtype(f"u{bits // 8}")
    whole = bits_of(dtype)
    put, read = writer(one.operands[0], one), [reader(item, piece, one) for item in source.items]

    def run(m: Any) -> None:
        value = read[0](m).astype(whole)
        for i, item in enumerate(read[1:], 1):
            value = value | (item(m).astype(whole) << whole.type(bits * i))
        put(m, value)

    return run


def _unpack(one: Instruction, dtype: np.dtype, target: Vector) -> Step:
    bits = 8 * dtype.itemsize // len(target.items)
    piece, whole = np.dtype(f"u{bits // 8}"), bits_of(dtype)
    a, put = reader(one.operands[1], whole, one), [writer(item, one) for item in target.items]

    def run(m: Any) -> None:
        value = a(m)
        for i, item in enumerate(put):
            item(m, (value >> whole.type(bits * i)).astype(piece))

    return run


def convert_address(one: Instruction, pc: int) -> Step:
    """cvta: an address in a space -> a generic one; with .to the other way."""
    space = one.modifiers[1] if one.modifiers[0] == "to" else one.modifiers[0]
    window = WINDOWS[space] * (-1 if one.modifiers[0] == "to" else 1)
    put, a = writer(one.operands[0], one), reader(one.operands[1], U64, one)
    if not window:
        return lambda m: put(m, a(m))
    return lambda m: put(m, (a(m).view(I64) + window).view(U64))


def is_space(one: Instruction, pc: int) -> Step:
    """isspacep: whether a generic address lies in this space."""
    put, a = writer(one.operands[0], one), reader(one.operands[1], U64, one)
    space = one.modifiers[0]
    if space not in ("shared", "local", "global"):
        raise refuse(one)

    def run(m: Any) -> None:
        window = np.where(a(m) >= LOCAL_WINDOW, 2, np.where(a(m) >= SHARED_WINDOW, 1, 0))
        put(m, window == ("global", "shared", "local").index(space))

    return run


def nothing(one: Instruction, pc: int) -> Step:
    """A hint to caches, or a pause: no value depends on it."""
    return lambda m: None


TABLE = {
    "mov": move,
    "cvta": convert_address,
    "isspacep": is_space,
    "prefetch": nothing,
    "prefetchu": nothing,
    "nanosleep": nothing,
    "discard": nothing,
    "applypriority": nothing,
}
