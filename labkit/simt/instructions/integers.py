"""Integer arithmetic: it wraps, as on the hardware; division truncates, and by zero gives all bits set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.simt.program import Instruction
from labkit.simt.types import bits_of
from labkit.simt.values import Step, reader, refuse, type_of, writer

U32, I32, U64, I64 = (np.dtype(name) for name in ("u4", "i4", "u8", "i8"))


def binary(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Instruction, int], Step]:
    """An instruction `op.type d, a, b`, where numpy's function does it."""

    def make(one: Instruction, pc: int) -> Step:
        dtype = type_of(one)
        put, a, b = (
            writer(one.operands[0], one),
            reader(one.operands[1], dtype, one),
            reader(one.operands[2], dtype, one),
        )
        if set(one.modifiers[:-1]):
            raise refuse(one)
        return lambda m: put(m, function(a(m), b(m)))

    return make


def unary(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Instruction, int], Step]:
    """An instruction `op.type d, a`."""

    def make(one: Instruction, pc: int) -> Step:
        put, a = writer(one.operands[0], one), reader(one.operands[1], type_of(one), one)
        return lambda m: put(m, function(a(m)))

    return make


def add_or_subtract(one: Instruction, pc: int) -> Step:
    """add, sub; with .sat clamped to s32; with .cc and as addc, subc with a carry bit."""
    dtype = type_of(one)
    put, a, b = writer(one.operands[0], one), reader(one.operands[1], dtype, one), reader(one.operands[2], dtype, one)
    function = np.add if one.opcode == "add" else np.subtract
    if "sat" in one.modifiers:
        return lambda m: put(m, np.clip(function(a(m).astype(I64), b(m)), -(2**31), 2**31 - 1).astype(I32))
    if set(one.modifiers[:-1]):
        raise refuse(one)
    return lambda m: put(m, function(a(m), b(m)))


def high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a product of 64-bit numbers, by 32-bit pieces; of smaller ones, by a larger type."""
    dtype = a.dtype
    if dtype.itemsize < 8:
        wide = np.dtype(f"{dtype.kind}{dtype.itemsize * 2}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(8 * dtype.itemsize)).astype(dtype)
    x, y, half = a.view(U64), b.view(U64), np.uint64(32)
    mask = np.uint64(0xFFFFFFFF)
    x0, x1, y0, y1 = x & mask, x >> half, y & mask, y >> half
    middle = (x0 * y0 >> half) + (x1 * y0 & mask) + (x0 * y1 & mask)
    top = x1 * y1 + (x1 * y0 >> half) + (x0 * y1 >> half) + (middle >> half)
    if dtype.kind == "i":
        top = top - np.where(a < 0, y, U64.type(0)) - np.where(b < 0, x, U64.type(0))
    return top.view(dtype)


def product(a: np.ndarray, b: np.ndarray, part: str) -> np.ndarray:
    """a * b: its lower half (lo), upper half (hi) or all of it (wide)."""
    if part == "lo":
        return a * b
    if part == "hi":
        return high(a, b)
    wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
    return a.astype(wide) * b.astype(wide)


def multiply(one: Instruction, pc: int) -> Step:
    """mul.{lo,hi,wide}, mul24.lo, and mad with an addend."""
    dtype, part = type_of(one), one.modifiers[0]
    if part not in ("lo", "hi", "wide") or len(one.modifiers) > 2:
        raise refuse(one)
    put, a, b = writer(one.operands[0], one), reader(one.operands[1], dtype, one), reader(one.operands[2], dtype, one)
    if one.opcode == "mul":
        return lambda m: put(m, product(a(m), b(m), part))
    wide = np.dtype(f"{dtype.kind}{dtype.itemsize * 2}") if part == "wide" else dtype
    c = reader(one.operands[3], wide, one)
    return lambda m: put(m, product(a(m), b(m), part) + c(m))


def multiply24(one: Instruction, pc: int) -> Step:
    """mul24.lo, mad24.lo: of the lower 24 bits."""
    dtype = type_of(one)
    if one.modifiers[0] != "lo":
        raise refuse(one)
    put, a, b = writer(one.operands[0], one), reader(one.operands[1], dtype, one), reader(one.operands[2], dtype, one)
    shift = dtype.type(8)

    def low(value: np.ndarray) -> np.ndarray:
        return (value << shift) >> shift

    if one.opcode == "mul24":
        return lambda m: put(m, low(a(m)) * low(b(m)))
    c = reader(one.operands[3], dtype, one)
    return lambda m: put(m, low(a(m)) * low(b(m)) + c(m))


def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b towards zero; all bits set where b is zero."""
    a, b = np.broadcast_arrays(a, b)
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        result = a // safe
    else:
        bits = bits_of(a.dtype)
        size = np.abs(a).view(bits) // np.abs(safe).view(bits)
        result = np.where((a < 0) != (safe < 0), (~size + bits.type(1)), size).view(a.dtype)
    return np.where(b == 0, ~np.zeros_like(a), result)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - b * (a / b); a where b is zero."""
    return np.where(b == 0, a, a - quotient(a, b) * b)


def absolute_difference(one: Instruction, pc: int) -> Step:
    """sad: |a - b| + c."""
    dtype = type_of(one)
    put = writer(one.operands[0], one)
    a, b, c = (reader(operand, dtype, one) for operand in one.operands[1:4])
    return lambda m: put(m, np.where(a(m) > b(m), a(m) - b(m), b(m) - a(m)) + c(m))


def dot_product(one: Instruction, pc: int) -> Step:
    """dp4a, dp2a: products of the bytes of two words (or halves by bytes), summed onto a third."""
    kinds = [name[0] for name in one.modifiers if name in ("s32", "u32")]
    put = writer(one.operands[0], one)
    a, b = (reader(operand, U32, one) for operand in one.operands[1:3])
    c = reader(one.operands[3], I32 if "s" in kinds else U32, one)

    def pieces(word: np.ndarray, kind: str, bits: int) -> list[np.ndarray]:
        whole = np.dtype(f"{'i' if kind == 's' else 'u'}{bits // 8}")
        return [(word >> np.uint32(i)).astype(f"u{bits // 8}").view(whole).astype(I64) for i in range(0, 32, bits)]

    def run(m: Any) -> None:
        if one.opcode == "dp4a":
            pairs = zip(pieces(a(m), kinds[0], 8), pieces(b(m), kinds[1], 8), strict=True)
        else:
            halves = pieces(b(m), kinds[1], 8)
            pairs = zip(pieces(a(m), kinds[0], 16), halves[:2] if "lo" in one.modifiers else halves[2:], strict=True)
        total = sum(x * y for x, y in pairs) + c(m).astype(I64)
        put(m, total.astype(U64).astype(U32))

    return run


def absolute_differences(one: Instruction, pc: int) -> Step:
    """vabsdiff2, vabsdiff4: |a - b| of the halves or bytes of two words; with .add their sum and a third word."""
    size = int(one.opcode[-1])
    adds = one.modifiers[3:] == ("add",)
    if one.modifiers[:3] != ("u32", "u32", "u32") or (one.modifiers[3:] and not adds):
        raise refuse(one)
    put = writer(one.operands[0], one)
    a, b, c = (reader(operand, U32, one) for operand in one.operands[1:4])
    bits = 32 // size
    mask = np.uint32((1 << bits) - 1)

    def run(m: Any) -> None:
        x, y = a(m), b(m)
        total = c(m) if adds else np.uint32(0)
        for place in (np.uint32(bits * i) for i in range(size)):
            left, right = x >> place & mask, y >> place & mask
            apart = np.where(left > right, left - right, right - left)
            total = total + apart if adds else total | apart << place
        put(m, total)

    return run


TABLE = {
    "add": add_or_subtract,
    "sub": add_or_subtract,
    "mul": multiply,
    "mad": multiply,
    "mul24": multiply24,
    "mad24": multiply24,
    "div": binary(quotient),
    "rem": binary(remainder),
    "min": binary(np.minimum),
    "max": binary(np.maximum),
    "abs": unary(np.abs),
    "neg": unary(np.negative),
    "sad": absolute_difference,
    "vabsdiff2": absolute_differences,
    "vabsdiff4": absolute_differences,
    "dp4a": dot_product,
    "dp2a": dot_product,
}
