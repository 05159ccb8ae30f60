"""cvt: between integers, floats and both, with rounding modes, saturation and flushing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.simt import exact
from labkit.simt.program import Instruction
from labkit.simt.types import dtype_of
from labkit.simt.values import Step, reader, refuse, writer

F16, F32, F64, U16, U32, U64, I64 = (np.dtype(name) for name in ("f2", "f4", "f8", "u2", "u4", "u8", "i8"))
TO_FLOAT = {"rn", "rz", "rm", "rp", "rna"}
TO_INTEGER: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
FLAGS = {"ftz", "sat", "relu", "satfinite"}


def convert(one: Instruction, pc: int) -> Step:
    """cvt[.mode][.ftz][.sat].dtype.stype d, a[, b]."""
    if one.opcode == "cvt" and one.modifiers[0] == "pack":
        raise refuse(one)
    target, source = one.modifiers[-2:]
    flags = set(one.modifiers[:-2])
    if flags - FLAGS - TO_FLOAT - TO_INTEGER.keys():
        raise refuse(one)
    put = writer(one.operands[0], one)
    mode = next((name for name in one.modifiers if name in TO_FLOAT), "rn")
    whole = next((TO_INTEGER[name] for name in one.modifiers if name in TO_INTEGER), None)
    if target in ("f16x2", "bf16x2"):
        return _pair(one, put, target, mode, flags)
    a = reader(one.operands[1], dtype_of(source), one)
    if _is_float(source):
        to_float = _float_to_float(source, target, mode, whole, flags, one)
        change = to_float if _is_float(target) or target == "tf32" else _float_to_integer(source, target, whole, flags)
    elif _is_float(target):
        change = _integer_to_float(target, mode, flags)
    else:
        change = _integer_to_integer(source, target, "sat" in flags)
    return lambda m: put(m, change(a(m)))


def _is_float(name: str) -> bool:
    return name in ("f16", "bf16", "f32", "f64")


def _wide(source: str, flags: set[str]) -> Callable[[np.ndarray], np.ndarray]:
    """The value as float64, exactly."""
    if source == "bf16":
        return lambda value: exact.bf16_to_f32(value).astype(F64)
    if source == "f32" and "ftz" in flags:
        return lambda value: exact.flush(value).astype(F64)
    return lambda value: value.astype(F64)


def _float_to_float(
    source: str,
    target: str,
    mode: str,
    whole: Callable[[np.ndarray], np.ndarray] | None,
    flags: set[str],
    one: Instruction,
) -> Callable[[np.ndarray], np.ndarray]:
    widen = _wide(source, flags)

    def change(value: np.ndarray) -> np.ndarray:
        value = widen(value)
        if whole is not None:
            value = whole(value)
        if "sat" in flags:
            value = exact.saturate(value)
        if "relu" in flags:
            value = np.where(value > 0, value, np.where(np.isnan(value), value, 0.0))
        return narrow(value)

    def narrow(value: np.ndarray) -> np.ndarray:
        if target == "f64":
            return value
        if target == "bf16":
            return exact.round_bf16(value, mode)
        if target == "tf32":
            bits = value.astype(F32).view(U32)
            return (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        result = exact.narrow(value, dtype_of(target), mode)
        return exact.flush(result) if "ftz" in flags and target == "f32" else result

    return change


def _pair(one: Instruction, put: Any, target: str, mode: str, flags: set[str]) -> Step:
    """cvt.rn.f16x2.f32 d, a, b: a into the high half, b into the low."""
    if len(one.operands) != 3 or one.type != "f32":
        raise refuse(one)
    change = _float_to_float("f32", target[:-2], mode, None, flags, one)
    a, b = (reader(operand, F32, one) for operand in one.operands[1:3])

    def run(m: Any) -> None:
        high, low = (change(value(m)).view(U16).astype(U32) for value in (a, b))
        put(m, (high << np.uint32(16)) | low)

    return run


def _float_to_integer(
    source: str, target: str, whole: Callable[[np.ndarray], np.ndarray] | None, flags: set[str]
) -> Callable[[np.ndarray], np.ndarray]:
    """Out of range clamps; NaN becomes 0, or the smallest (signed) or largest number of 64 bits."""
    dtype, widen = dtype_of(target), _wide(source, flags)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    # Of a NaN, a GPU makes 0 in 32 bits or fewer; in 64 bits the top bit alone.
    of_nan = 0 if dtype.itemsize < 8 else dtype.type(1 << 63) if dtype.kind == "u" else dtype.type(low)

    def change(value: np.ndarray) -> np.ndarray:
        value = (whole or np.trunc)(widen(value))
        inside = (value >= float(low)) & (value < float(high + 1))
        safe = np.where(inside, value, 0.0).astype(dtype)
        clamped = np.where(value < 0, dtype.type(low), dtype.type(high))
        return np.where(inside, safe, np.where(np.isnan(value), dtype.type(of_nan), clamped))

    return change


def _integer_to_float(target: str, mode: str, flags: set[str]) -> Callable[[np.ndarray], np.ndarray]:
    def change(value: np.ndarray) -> np.ndarray:
        near = value.astype(F64)
        if value.dtype.itemsize == 8:
            if target in ("f32", "f64") and mode == "rn":
                return value.astype(dtype_of(target))
            near = exact.to_odd(near, _lost(value, near)) if target != "f64" else near
            if target == "f64":
                return exact.directed(near, _lost(value, near), mode)
        if target == "f64":
            return near
        result = exact.round_bf16(near, mode) if target == "bf16" else exact.narrow(near, dtype_of(target), mode)
        return exact.saturate(result) if "sat" in flags else result

    return change


def _lost(value: np.ndarray, near: np.ndarray) -> np.ndarray:
    """What a 64-bit integer loses as float64, exactly."""
    top = near >= 2.0 ** (63 if value.dtype.kind == "i" else 64)
    back = np.where(top, 0.0, near).astype(value.dtype)
    rest = np.where(top, value - value.dtype.type(np.iinfo(value.dtype).max), (value - back).view(I64)).astype(I64)
    return rest.astype(F64) - top.astype(F64)


def _integer_to_integer(source: str, target: str, clamp: bool) -> Callable[[np.ndarray], np.ndarray]:
    dtype, origin = dtype_of(target), dtype_of(source)
    if not clamp:
        return lambda value: value.astype(dtype)
    low, high = np.iinfo(dtype), np.iinfo(origin)
    bottom, top = max(low.min, high.min), min(low.max, high.max)
    return lambda value: np.clip(value, origin.type(bottom), origin.type(top)).astype(dtype)


TABLE = {"cvt": convert}
