"""Floating-point arithmetic in f32, f64, f16, bf16 and packed pairs, exact where PTX is exact.

The approximations (ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt and div with .approx or .full) are computed in float64
and rounded once, so they lie within the error that the PTX manual documents, and need not equal a GPU's bits.
f32 with .ftz flushes subnormal numbers. Two NaNs are not told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from labkit.simt import exact
from labkit.simt.program import Instruction
from labkit.simt.values import Step, reader, refuse, type_of, writer

F16, F32, F64, U16, U32 = (np.dtype(name) for name in ("f2", "f4", "f8", "u2", "u4"))
MODES = {"rn", "rz", "rm", "rp"}
FLOATS = {"f16", "f32", "f64", "bf16", "f16x2", "bf16x2"}
Make = Callable[[Instruction, int], Step]
Floating = Callable[..., np.ndarray]


def dispatch(integers: Mapping[str, Make]) -> dict[str, Make]:
    """The table of opcodes that exist for floats, and for integers too where that table has them."""

    def choose(opcode: str) -> Make:
        whole = integers.get(opcode)

        def make(one: Instruction, pc: int) -> Step:
            if one.type in FLOATS:
                return arithmetic(one, pc)
            if whole is None:
                raise refuse(one)
            return whole(one, pc)

        return make

    return {opcode: choose(opcode) for opcode in (*ARITHMETIC, *APPROXIMATE)}


def mode_of(one: Instruction) -> str:
    """The rounding mode; to nearest even where none is written."""
    return next((name for name in one.modifiers if name in MODES), "rn")


def flops_of(one: Instruction) -> int:
    """FLOPs of one lane: add, sub and mul are one, fma is two, each of a packed pair.

    As Nsight Compute counts sm__sass_thread_inst_executed_op_{fadd,fmul,ffma}_pred_on: divisions, roots and
    approximations are none here (a GPU makes several instructions of them), nor are minima and comparisons.
    """
    if one.opcode not in ("add", "sub", "mul", "fma", "mad") or one.type not in FLOATS:
        return 0
    return (2 if one.opcode in ("fma", "mad") else 1) * (2 if one.type.endswith("x2") else 1)


def _numpy(name: str) -> Floating:
    """An operation that numpy rounds right, in every mode: exactly in float64, or with what float64 loses."""

    def apply(mode: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if mode == "rn":
            return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name](a, b)
        b = -b if name == "sub" else b
        if a.dtype == F64:
            total, lost = exact.two_product(a, b) if name == "mul" else exact.two_sum(a, b)
            return exact.directed(total, lost, mode)
        wide = a.astype(F64), b.astype(F64)
        value = wide[0] * wide[1] if name == "mul" else exact.to_odd(*exact.two_sum(*wide))
        return exact.narrow(value, a.dtype, mode)

    return apply


def _fma(mode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    if a.dtype == F64:
        return exact.fma64(a, b, c, mode)
    return exact.fma32(a, b, c, mode) if a.dtype == F32 else exact.fma16(a, b, c)


def _through_float64(function: Callable[..., np.ndarray]) -> Floating:
    """Division, roots, reciprocals: of float32 numbers, float64 is precise enough to round again in any mode."""

    def apply(mode: str, *values: np.ndarray) -> np.ndarray:
        dtype = values[0].dtype
        if dtype == F64:
            return function(*values)
        return exact.narrow(function(*(value.astype(F64) for value in values)), dtype, mode)

    return apply


def _any_mode(near: Floating, directed: Floating) -> Floating:
    """`near` rounds to nearest and float32 in every mode; `directed` rounds float64 in the others."""

    def apply(mode: str, *values: np.ndarray) -> np.ndarray:
        return near(mode, *values) if mode == "rn" or values[0].dtype != F64 else directed(*values, mode)

    return apply


def _pick(function: Callable, nan: bool, magnitude: bool) -> Floating:
    """min, max: of a number and a NaN the number, with .NaN the NaN; -0 is less than +0."""

    def apply(mode: str, *values: np.ndarray) -> np.ndarray:
        result, *rest = values
        for b in rest:
            a = result
            if magnitude:
                a, b = np.abs(a), np.abs(b)
            either = function(a, b)
            both_zero = (a == 0) & (b == 0)
            sign = (np.signbit(a) | np.signbit(b)) if function is np.fmin else (np.signbit(a) & np.signbit(b))
            either = np.where(both_zero, np.where(sign, -a.dtype.type(0), a.dtype.type(0)), either)
            result = np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), either) if nan else either
        return result

    return apply


def copy_sign(mode: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX: the sign of a, the size of b."""
    return np.copysign(b, a)


def _clear_sign(mode: str, a: np.ndarray) -> np.ndarray:
    return np.abs(a)


def _tanh(mode: str, a: np.ndarray) -> np.ndarray:
    return np.tanh(a.astype(F64)).astype(a.dtype)


ARITHMETIC: dict[str, Floating | None] = {
    "add": _numpy("add"),
    "sub": _numpy("sub"),
    "mul": _numpy("mul"),
    "fma": _fma,
    "mad": _fma,
    "div": _any_mode(_through_float64(np.divide), exact.divide64),
    "sqrt": _any_mode(_through_float64(np.sqrt), exact.root64),
    "rcp": _any_mode(_through_float64(lambda a: 1.0 / a), lambda a, mode: exact.divide64(np.ones_like(a), a, mode)),
    "abs": _clear_sign,
    "neg": lambda mode, a: -a,
    "copysign": copy_sign,
    "min": None,
    "max": None,
}
APPROXIMATE: dict[str, Floating] = {
    "ex2": _through_float64(np.exp2),
    "lg2": _through_float64(np.log2),
    "sin": _through_float64(np.sin),
    "cos": _through_float64(np.cos),
    "rsqrt": _through_float64(lambda a: 1.0 / np.sqrt(a)),
    "tanh": _tanh,
}


def function_of(one: Instruction) -> Floating:
    """What computes this instruction: (mode, operands) -> result."""
    if one.opcode in ("min", "max"):
        chosen = np.fmin if one.opcode == "min" else np.fmax
        return _pick(chosen, "NaN" in one.modifiers, "xorsign" in one.modifiers)
    return ARITHMETIC.get(one.opcode) or APPROXIMATE[one.opcode]


def arithmetic(one: Instruction, pc: int) -> Step:
    """d = op(a, b, c) of any floating type."""
    known = {"approx", "full", "ftz", "sat", "NaN", "relu", *MODES, *FLOATS}
    mode, function, kind = mode_of(one), function_of(one), one.type
    if set(one.modifiers) - known or (mode != "rn" and kind not in ("f32", "f64")):
        raise refuse(one)
    put = writer(one.operands[0], one)
    read = [reader(operand, type_of(one), one) for operand in one.operands[1:]]
    compute = _of_type(kind, function, mode, one)
    if "ftz" in one.modifiers and kind == "f32":
        inner = compute
        compute = lambda *values: exact.flush(inner(*(exact.flush(value) for value in values)))  # noqa: E731
    if "sat" in one.modifiers:
        before = compute
        compute = lambda *values: exact.saturate(before(*values))  # noqa: E731
    if len(read) == 1:
        a = read[0]
        return lambda m: put(m, compute(a(m)))
    if len(read) == 2:
        a, b = read
        return lambda m: put(m, compute(a(m), b(m)))
    a, b, c = read
    return lambda m: put(m, compute(a(m), b(m), c(m)))


def _of_type(kind: str, function: Floating, mode: str, one: Instruction) -> Callable[..., np.ndarray]:
    """The function on values as registers hold them."""
    if kind in ("f32", "f64") and mode == "rn" and one.opcode in ("add", "sub", "mul"):
        return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[one.opcode]
    if kind in ("f16", "f32", "f64"):
        if "relu" in one.modifiers:
            return lambda *values: _relu(function(mode, *values))
        return lambda *values: function(mode, *values)
    if kind == "bf16":
        return _bf16(function, one)
    single = _of_type(kind[:-2], function, mode, one)
    half = F16 if kind == "f16x2" else U16

    def packed(*values: np.ndarray) -> np.ndarray:
        low = single(*((value & np.uint32(0xFFFF)).astype(U16).view(half) for value in values))
        high = single(*((value >> np.uint32(16)).astype(U16).view(half) for value in values))
        return (high.view(U16).astype(U32) << np.uint32(16)) | low.view(U16)

    return packed


def _relu(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0, value, np.where(np.isnan(value), value, value.dtype.type(0)))


def _bf16(function: Floating, one: Instruction) -> Callable[..., np.ndarray]:
    """bfloat16 through wider types. Signs are changed in the bits; a sum or product of two is exact in float64."""
    if one.opcode == "neg":
        return lambda a: a ^ np.uint16(0x8000)
    if one.opcode == "abs":
        return lambda a: a & np.uint16(0x7FFF)
    if one.opcode == "fma":
        if "relu" in one.modifiers:
            return lambda a, b, c: exact.round_bf16(_relu(exact.bf16_to_f32(exact.fma_bf16(a, b, c))))
        return exact.fma_bf16
    if one.opcode in ("min", "max", "add", "sub", "mul", "ex2", "tanh"):
        return lambda *values: exact.round_bf16(
            np.asarray(function("rn", *(exact.bf16_to_f32(value).astype(F64) for value in values)))
        )
    raise refuse(one)


def test_of(operation: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The comparison of a setp, also between integers: eq, ltu (also true where one is a NaN), num, lo."""
    plain: dict[str, Any] = {
        "eq": np.equal,
        "ne": lambda a, b: (a < b) | (a > b) if a.dtype.kind == "f" else a != b,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "lo": np.less,
        "ls": np.less_equal,
        "hi": np.greater,
        "hs": np.greater_equal,
        "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
        "nan": lambda a, b: np.isnan(a) | np.isnan(b),
        "equ": lambda a, b: ~((a < b) | (a > b)),
        "neu": np.not_equal,
        "ltu": lambda a, b: ~(a >= b),
        "leu": lambda a, b: ~(a > b),
        "gtu": lambda a, b: ~(a <= b),
        "geu": lambda a, b: ~(a < b),
    }
    return plain[operation]
