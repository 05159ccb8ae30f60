"""Logic, shifts, bit fields and bit counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.instructions.integers import binary, unary
from labkit.simt.program import Immediate, Instruction
from labkit.simt.types import bits_of
from labkit.simt.values import Step, reader, refuse, type_of, writer

U8, U32, U64, I64 = (np.dtype(name) for name in ("u1", "u4", "u8", "i8"))


def logic(one: Instruction, pc: int) -> Step:
    """and, or, xor of words and of predicates."""
    return binary({"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[one.opcode])(one, pc)


def logical_not(one: Instruction, pc: int) -> Step:
    """cnot: 1 where a is zero."""
    dtype = type_of(one)
    put, a = writer(one.operands[0], one), reader(one.operands[1], dtype, one)
    return lambda m: put(m, (a(m) == 0).astype(dtype))


def shift(one: Instruction, pc: int) -> Step:
    """shl, shr: a shift by the width or more leaves zeros, or the sign."""
    dtype = type_of(one)
    if one.opcode == "shl":
        dtype = bits_of(dtype)
    put, a = writer(one.operands[0], one), reader(one.operands[1], dtype, one)
    b = reader(one.operands[2], U32, one)
    width, top = 8 * dtype.itemsize, dtype.type(8 * dtype.itemsize - 1)
    function = np.left_shift if one.opcode == "shl" else np.right_shift
    if isinstance(one.operands[2], Immediate) and one.operands[2].value < width:
        amount = dtype.type(one.operands[2].value)
        return lambda m: put(m, function(a(m), amount))

    def run(m: Any) -> None:
        value, by = a(m), b(m)
        clamped = np.minimum(by, np.uint32(width - 1)).astype(dtype)
        shifted = function(value, clamped)
        rest = value >> top if dtype.kind == "i" else dtype.type(0)
        put(m, np.where(by >= width, rest, shifted))

    return run


def funnel_shift(one: Instruction, pc: int) -> Step:
    """shf.{l,r}.{wrap,clamp}: a shift of the 64 bits (b, a)."""
    put = writer(one.operands[0], one)
    a, b, c = (reader(operand, U32, one) for operand in one.operands[1:4])
    wrap = "wrap" in one.modifiers

    def run(m: Any) -> None:
        both = (b(m).astype(U64) << np.uint64(32)) | a(m)
        by = (c(m) & np.uint32(31) if wrap else np.minimum(c(m), np.uint32(32))).astype(U64)
        if one.modifiers[0] == "l":
            put(m, ((both << by) >> np.uint64(32)).astype(U32))
        else:
            put(m, (both >> by).astype(U32))

    return run


def extract(one: Instruction, pc: int) -> Step:
    """bfe: `length` bits from `start` on; signed ones are extended by their top bit."""
    dtype = type_of(one)
    put, a = writer(one.operands[0], one), reader(one.operands[1], dtype, one)
    start, length = (reader(operand, U32, one) for operand in one.operands[2:4])
    width = 8 * dtype.itemsize

    def run(m: Any) -> None:
        at = (start(m) & np.uint32(255)).astype(I64)
        n = (length(m) & np.uint32(255)).astype(I64)
        value = a(m)
        bits = np.where(
            at < width, value.view(bits_of(dtype)).astype(U64) >> np.minimum(at, 63).astype(U64), np.uint64(0)
        )
        keep = np.where(n >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(n, 63).astype(U64)) - np.uint64(1))
        bits = bits & keep
        if dtype.kind == "i":
            top = np.minimum(at + n - 1, width - 1)
            negative = ((value.astype(I64) >> np.clip(top, 0, 63)) & 1).astype(bool) & (n > 0)
            bits = np.where(
                negative, bits | ~np.where(at + n > width, keep >> (at + n - width).clip(0, 63).astype(U64), keep), bits
            )
        put(m, bits.astype(bits_of(dtype)).view(dtype))

    return run


def insert(one: Instruction, pc: int) -> Step:
    """bfi: put the low `length` bits of a into b at `start`."""
    dtype = type_of(one)
    put = writer(one.operands[0], one)
    a, b = (reader(operand, dtype, one) for operand in one.operands[1:3])
    start, length = (reader(operand, U32, one) for operand in one.operands[3:5])
    width = 8 * dtype.itemsize

    def run(m: Any) -> None:
        at = (start(m) & np.uint32(255)).astype(U64)
        n = (length(m) & np.uint32(255)).astype(U64)
        keep = np.where(n >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(n, np.uint64(63))) - np.uint64(1))
        place = np.where(at < width, keep << np.minimum(at, np.uint64(63)), np.uint64(0))
        value = (a(m).astype(U64) << np.minimum(at, np.uint64(63))) & place
        put(m, ((b(m).astype(U64) & ~place) | value).astype(dtype))

    return run


def count_ones(value: np.ndarray) -> np.ndarray:
    return np.bitwise_count(value).astype(U32) if hasattr(np, "bitwise_count") else _count_ones(value)


def _count_ones(value: np.ndarray) -> np.ndarray:
    """Where numpy is older than 2.0."""
    table = np.array([bin(i).count("1") for i in range(256)], np.uint32)
    return table[np.ascontiguousarray(value)[..., None].view(U8)].sum(-1, dtype=np.uint32)


def leading_zeros(value: np.ndarray) -> np.ndarray:
    """Zeros above the highest bit that is set; the width where none is."""
    for step in (1, 2, 4, 8, 16, 32):
        if step < 8 * value.dtype.itemsize:
            value = value | (value >> value.dtype.type(step))
    return np.uint32(8 * value.dtype.itemsize) - count_ones(value)


def reverse(value: np.ndarray) -> np.ndarray:
    """The bits in the opposite order."""
    table = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)
    value = np.ascontiguousarray(value)
    return table[value[..., None].view(U8)][..., ::-1].copy().view(value.dtype)[..., 0]


def find_highest(one: Instruction, pc: int) -> Step:
    """bfind: the place of the highest bit that is not a sign bit; all bits set where there is none."""
    dtype = type_of(one)
    put, a = writer(one.operands[0], one), reader(one.operands[1], dtype, one)
    bits, width = bits_of(dtype), np.uint32(8 * dtype.itemsize)

    def run(m: Any) -> None:
        value = a(m)
        zeros = leading_zeros((np.where(value < 0, ~value, value) if dtype.kind == "i" else value).view(bits))
        place = zeros if "shiftamt" in one.modifiers else width - np.uint32(1) - zeros
        put(m, np.where(zeros == width, np.uint32(0xFFFFFFFF), place))

    return run


def permute(one: Instruction, pc: int) -> Step:
    """prmt: four bytes chosen from the eight of two words; bit 3 of a choice copies the sign of its byte."""
    if one.modifiers != ("b32",):
        raise refuse(one)
    put = writer(one.operands[0], one)
    a, b, c = (reader(operand, U32, one) for operand in one.operands[1:4])

    def run(m: Any) -> None:
        both, choice = (b(m).astype(U64) << np.uint64(32)) | a(m), c(m)
        result = np.uint32(0)
        for i in range(4):
            nibble = (choice >> np.uint32(4 * i)) & np.uint32(15)
            byte = (both >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(U64)).astype(U32) & np.uint32(255)
            sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
            result = result | (np.where(nibble & np.uint32(8), sign, byte) << np.uint32(8 * i))
        put(m, result)

    return run


def lookup(one: Instruction, pc: int) -> Step:
    """lop3: any logic of three words, bit i of the table for the three bits that read i."""
    put = writer(one.operands[0], one)
    a, b, c = (reader(operand, U32, one) for operand in one.operands[1:4])
    table = one.operands[4].value

    def run(m: Any) -> None:
        x, y, z = a(m), b(m), c(m)
        result = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape), np.uint32)
        for i in range(8):
            if table >> i & 1:
                result |= (x if i & 4 else ~x) & (y if i & 2 else ~y) & (z if i & 1 else ~z)
        put(m, result)

    return run


TABLE = {
    "and": logic,
    "or": logic,
    "xor": logic,
    "not": unary(np.invert),
    "cnot": logical_not,
    "shl": shift,
    "shr": shift,
    "shf": funnel_shift,
    "bfe": extract,
    "bfi": insert,
    "popc": unary(count_ones),
    "clz": unary(leading_zeros),
    "brev": unary(reverse),
    "bfind": find_highest,
    "prmt": permute,
    "lop3": lookup,
}
