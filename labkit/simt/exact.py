"""Arithmetic that numpy does not have: fused multiply-add, and rounding to any format in any direction.

The idea behind all of it is rounding to odd: the exact result is cut off at float64's 53 bits and its last bit is set
if anything was lost. What was lost then still shows, so that a second rounding to a format of 51 bits or fewer gives
what one rounding of the exact result gives (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
NaNs are NaNs: their payloads are not the hardware's.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

F32, F64, F16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)
_HALFWAY_BITS, _BELOW_F32 = np.uint64(0x1000_0000), np.uint64(0x1FFF_FFFF)
_SPLIT = float(2**27 + 1)


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b rounded to float64, and what the rounding lost, exactly (Knuth)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def to_odd(value: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """value + lost, rounded to odd. value: float64; lost: smaller than its last bit."""
    inexact = (lost != 0) & np.isfinite(value) & np.isfinite(lost)
    if not inexact.any():
        return value
    inward = inexact & ((lost < 0) != (value < 0))
    bits = value.view(np.int64) - inward
    return np.where(inexact, bits | 1, bits).view(np.float64)


def narrow(value: np.ndarray, dtype: np.dtype, mode: str = "rn") -> np.ndarray:
    """float64 -> float32 or float16 in one of PTX's modes: rn (to nearest even), rz, rm (down), rp (up)."""
    nearest = value.astype(dtype)
    if mode == "rn":
        return nearest
    back = nearest.astype(np.float64)
    zero, infinity = dtype.type(0), dtype.type(np.inf)
    if mode == "rz":
        return np.where(np.abs(back) > np.abs(value), np.nextafter(nearest, zero), nearest)
    if mode == "rm":
        return np.where(back > value, np.nextafter(nearest, -infinity), nearest)
    if mode == "rp":
        return np.where(back < value, np.nextafter(nearest, infinity), nearest)
    raise ValueError(f"no rounding mode {mode}")


def round_bf16(value: np.ndarray, mode: str = "rn") -> np.ndarray:
    """float64 or float32 -> the 16 bits of bfloat16 (uint16), rounded once."""
    if value.dtype == F64:
        cut = narrow(value, F32, "rz")
        value = np.where(
            (cut.astype(F64) != value) & np.isfinite(value), (cut.view(np.uint32) | np.uint32(1)).view(F32), cut
        )
    bits = value.view(np.uint32)
    if mode == "rz":
        rounded = bits >> np.uint32(16)
    elif mode == "rn":
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    else:
        raise ValueError(f"no rounding mode {mode} of bf16")
    return np.where(np.isnan(value), np.uint32(0x7FFF), rounded).astype(np.uint16)


def bf16_to_f32(bits: np.ndarray) -> np.ndarray:
    """The bits of bfloat16 as float32, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(F32)


def fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str = "rn") -> np.ndarray:
    """a * b + c of float32, rounded once. The product is exact in float64; of the sum only what it loses matters."""
    product, addend = np.multiply(a, b, dtype=F64), c.astype(F64)
    total = product + addend
    if mode == "rn":
        try:
            with np.errstate(under="raise"):
                result = total.astype(F32)
            # Twice rounded is wrong only where the first rounding lands halfway between two float32 numbers.
            if not ((total.view(np.uint64) & _BELOW_F32) == _HALFWAY_BITS).any():
                return result
        except FloatingPointError:
            pass
    return narrow(to_odd(*two_sum(product, addend)), F32, mode)


def fma16(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of float16, rounded once to nearest."""
    return to_odd(*two_sum(a.astype(F64) * b.astype(F64), c.astype(F64))).astype(F16)


def fma_bf16(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of bfloat16 bits, rounded once to nearest."""
    a, b, c = (bf16_to_f32(x).astype(F64) for x in (a, b, c))
    return round_bf16(to_odd(*two_sum(a * b, c)))


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b rounded to float64, and what the rounding lost (Dekker); exact away from over- and underflow."""
    product = a * b
    a_high, b_high = a * _SPLIT, b * _SPLIT
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str = "rn") -> np.ndarray:
    """a * b + c of float64, rounded once."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = two_product(a, b)
    upper, lower = two_sum(c, low)
    total, rest = two_sum(high, upper)
    if mode == "rn":
        result = total + to_odd(*two_sum(rest, lower))
    else:
        result = directed(total, to_odd(*two_sum(rest, lower)), mode)
    sizes = np.stack([np.abs(x) for x in (a, b, c, high)])
    usual = ((sizes < 2.0**900) & ((sizes > 2.0**-900) | (sizes == 0))).all(0) & ((high != 0) | (a == 0) | (b == 0))
    if usual.all():
        return np.where((a == 0) | (b == 0), a * b + c, result)
    result = np.where(usual & (a != 0) & (b != 0), result, a * b + c)
    for at in zip(*np.nonzero(~usual & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)), strict=True):
        result[at] = _slow_fma(float(a[at]), float(b[at]), float(c[at]), mode)
    return result


def _slow_fma(a: float, b: float, c: float, mode: str) -> float:
    """By exact fractions, for numbers so large or small that float64's tricks fail."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    over = (math.isinf(nearest) and nearest > 0) or (math.isfinite(nearest) and Fraction(nearest) > exact)
    under = (math.isinf(nearest) and nearest < 0) or (math.isfinite(nearest) and Fraction(nearest) < exact)
    if over and (mode == "rm" or (mode == "rz" and exact > 0)):
        return math.nextafter(nearest, -math.inf)
    if under and (mode == "rp" or (mode == "rz" and exact < 0)):
        return math.nextafter(nearest, math.inf)
    return nearest if nearest else math.copysign(0.0, exact)


def directed(value: np.ndarray, lost: np.ndarray, mode: str) -> np.ndarray:
    """value + lost of float64 in a directed mode, where value is that sum rounded to nearest or close by."""
    total, rest = two_sum(value, lost)
    infinity = np.inf
    if mode == "rz":
        return np.where((rest != 0) & ((rest < 0) != (total < 0)), np.nextafter(total, 0.0), total)
    if mode == "rm":
        return np.where(rest < 0, np.nextafter(total, -infinity), total)
    if mode == "rp":
        return np.where(rest > 0, np.nextafter(total, infinity), total)
    raise ValueError(f"no rounding mode {mode}")


def flush(value: np.ndarray) -> np.ndarray:
    """float32 with every subnormal number replaced by a zero of its sign (.ftz)."""
    tiny = np.abs(value) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), value), value) if tiny.any() else value


def saturate(value: np.ndarray) -> np.ndarray:
    """Clamp to [0, 1]; NaN becomes 0 (.sat)."""
    kind = value.dtype.type
    return np.where(np.isnan(value), kind(0), np.clip(value, kind(0), kind(1)))
