"""Comparisons and choices: setp, set, selp, slct."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt import exact
from labkit.simt.instructions.floats import test_of
from labkit.simt.program import Instruction, Operand, Pair
from labkit.simt.types import dtype_of
from labkit.simt.values import Reader, Step, reader, refuse, type_of, writer

BOOL, F16, F32, U16, U32 = (np.dtype(name) for name in ("?", "f2", "f4", "u2", "u4"))
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _float_reader(operand: Operand | None, one: Instruction) -> Reader:
    """An operand of a comparison; bfloat16 as float32, flushed where .ftz says so."""
    read = reader(operand, type_of(one), one)
    if one.type == "bf16":
        return lambda m: exact.bf16_to_f32(read(m))
    if "ftz" in one.modifiers and one.type == "f32":
        return lambda m: exact.flush(read(m))
    return read


def set_predicate(one: Instruction, pc: int) -> Step:
    """setp.cmp[.bool].type p[|q], a, b[, c]: p = (a cmp b) bool c, q = !(a cmp b) bool c."""
    known = {"ftz"} | COMBINE.keys()
    if set(one.modifiers[1:-1]) - known:
        raise refuse(one)
    if one.type.endswith("x2"):
        return _packed_predicates(one)
    target = one.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    put, put_second = writer(first, one), writer(second, one)
    compare = test_of(one.modifiers[0])
    a, b = (_float_reader(operand, one) for operand in one.operands[1:3])
    if len(one.operands) < 4:
        if second is None:
            return lambda m: put(m, compare(a(m), b(m)))
        return lambda m: _both(m, put, put_second, compare(a(m), b(m)))
    combine = next(COMBINE[name] for name in one.modifiers if name in COMBINE)
    c = reader(one.operands[3], BOOL, one)

    def run(m: Any) -> None:
        result, other = compare(a(m), b(m)), c(m)
        put(m, combine(result, other))
        put_second(m, combine(~result, other))

    return run


def _both(m: Any, put: Any, put_second: Any, result: np.ndarray) -> None:
    put(m, result)
    put_second(m, ~result)


def _halves(read: Reader, kind: str) -> Any:
    def split(m: Any) -> tuple[np.ndarray, np.ndarray]:
        value = read(m)
        parts = (value & np.uint32(0xFFFF)).astype(U16), (value >> np.uint32(16)).astype(U16)
        return tuple(part.view(F16) if kind == "f16x2" else exact.bf16_to_f32(part) for part in parts)

    return split


def _packed_predicates(one: Instruction) -> Step:
    """setp.cmp.f16x2 p|q: of the low and the high halves."""
    target = one.operands[0]
    if not isinstance(target, Pair) or len(one.operands) > 3:
        raise refuse(one)
    put, put_second = writer(target.first, one), writer(target.second, one)
    compare = test_of(one.modifiers[0])
    a, b = (_halves(reader(operand, U32, one), one.type) for operand in one.operands[1:3])

    def run(m: Any) -> None:
        (a_low, a_high), (b_low, b_high) = a(m), b(m)
        put(m, compare(a_low, b_low))
        put_second(m, compare(a_high, b_high))

    return run


def set_word(one: Instruction, pc: int) -> Step:
    """set.cmp.dtype.stype: all ones (or 1.0) where true, else zero; of packed halves each for itself."""
    kind, source = one.modifiers[-2], one.modifiers[-1]
    if set(one.modifiers[1:-2]) - {"ftz"} or len(one.operands) != 3:
        raise refuse(one)
    put, compare = writer(one.operands[0], one), test_of(one.modifiers[0])
    if source.endswith("x2"):
        a, b = (_halves(reader(operand, U32, one), source) for operand in one.operands[1:3])
        true = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(kind, 0xFFFF)

        def run(m: Any) -> None:
            (a_low, a_high), (b_low, b_high) = a(m), b(m)
            low = np.where(compare(a_low, b_low), np.uint32(true), np.uint32(0))
            put(m, low | np.where(compare(a_high, b_high), np.uint32(true << 16), np.uint32(0)))

        return run
    a, b = (_float_reader(operand, one) for operand in one.operands[1:3])
    dtype = dtype_of(kind)
    if kind == "bf16":
        true_value, false_value = np.uint16(0x3F80), np.uint16(0)
    elif dtype.kind == "f":
        true_value, false_value = dtype.type(1), dtype.type(0)
    else:
        true_value, false_value = ~dtype.type(0), dtype.type(0)
    return lambda m: put(m, np.where(compare(a(m), b(m)), true_value, false_value))


def select(one: Instruction, pc: int) -> Step:
    """selp: a where the predicate is true, else b."""
    dtype, put = type_of(one), writer(one.operands[0], one)
    a, b = (reader(operand, dtype, one) for operand in one.operands[1:3])
    p = reader(one.operands[3], BOOL, one)
    return lambda m: put(m, np.where(p(m), a(m), b(m)))


def select_by_sign(one: Instruction, pc: int) -> Step:
    """slct: a where c >= 0, else b."""
    dtype, put = dtype_of(one.modifiers[-2]), writer(one.operands[0], one)
    a, b = (reader(operand, dtype, one) for operand in one.operands[1:3])
    c = reader(one.operands[3], type_of(one), one)
    return lambda m: put(m, np.where(c(m) >= 0, a(m), b(m)))


def test_property(one: Instruction, pc: int) -> Step:
    """testp: finite, infinite, number, notanumber, normal, subnormal."""
    put, a = writer(one.operands[0], one), reader(one.operands[1], type_of(one), one)
    tiny = np.finfo(type_of(one)).tiny
    tests = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda x: ~np.isnan(x),
        "notanumber": np.isnan,
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= tiny),
        "subnormal": lambda x: (x != 0) & (np.abs(x) < tiny),
    }
    test = tests[one.modifiers[0]]
    return lambda m: put(m, test(a(m)))


TABLE = {"setp": set_predicate, "set": set_word, "selp": select, "slct": select_by_sign, "testp": test_property}
