"""Arithmetic that numpy does not have: fused multiply-add, and rounding to any format in any direction.

The idea behind all of it is rounding to odd: the exact result is cut off at float64's 53 bits and its last bit is set
if anything was lost. What was lost then still shows, so that a second rounding to a format of 51 bits or fewer gives
what one rounding of the exact result gives (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
NaNs are NaNs: their payloads are not the hardware's.
"""

from __future__ import annotations

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
    hard = ~usual & (a != 0) & (b != 0) & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    if hard.any():
        result[hard] = _rescale(*_scaled_fma(a[hard], b[hard], c[hard]), mode)
    return result


FAR = 120
"""Binary places by which the smaller of product and addend lies so far below the other that only its sign matters."""


def _scaled_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(value, rest, exponent) of a * b + c, which is (value + rest) * 2**exponent: numbers of any size, a and b not 0.

    value is the sum rounded to nearest at a size where nothing over- or underflows. Of rest, sign and zero are exact.
    """
    (a, a_exponent), (b, b_exponent), (c, c_exponent) = np.frexp(a), np.frexp(b), np.frexp(c)
    exponent = (a_exponent + b_exponent).astype(np.int64)
    shift = np.where(c == 0, 0, c_exponent - exponent)
    # An addend so large that the product is below all of its places: any product as small as that will do.
    exponent += np.maximum(shift - FAR, 0)
    high, low = two_product(a, b)
    upper, lower = two_sum(np.ldexp(c, np.clip(shift, -2 * FAR, FAR)), low)
    total, rest = two_sum(high, upper)
    value, rest = two_sum(total, to_odd(*two_sum(rest, lower)))
    return value, rest, exponent


def _rescale(value: np.ndarray, rest: np.ndarray, exponent: np.ndarray, mode: str) -> np.ndarray:
    """(value + rest) * 2**exponent as float64, rounded once, also where that is subnormal or too large."""
    exponent = np.clip(exponent, -1300, 1300)  # beyond, everything is 0 or infinite
    half = exponent // 2
    near = np.ldexp(value, half) * np.ldexp(1.0, exponent - half)
    # What this rounding has lost, at the size of value; half a place of a subnormal number, there, is a tie.
    back = np.ldexp(np.ldexp(near, -half), half - exponent)
    lost = np.where(value == back, 0.0, value - back)
    if mode != "rn":
        return directed_by(near, np.where(lost == 0, rest, lost), mode)
    tie = (lost != 0) & (rest != 0) & (np.abs(lost) == np.ldexp(0.5, np.clip(-1074 - exponent, -1500, 1000)))
    was_down = lost > 0
    away = np.where(was_down, np.inf, -np.inf)
    # Of a tie, rest says which side it lies on; the rounding to even may have taken the other.
    return np.where(tie & (was_down == (rest > 0)), np.nextafter(near, away), near)


def divide64(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """a / b of float64 in a directed mode."""
    a, b = np.broadcast_arrays(a, b)
    near = a / b
    return directed_by(near, _sign_of_rest(near, b, a) * np.sign(b), mode)


def root64(a: np.ndarray, mode: str) -> np.ndarray:
    """The square root of float64 in a directed mode."""
    near = np.sqrt(a)
    return directed_by(near, _sign_of_rest(near, near, a), mode)


def _sign_of_rest(near: np.ndarray, factor: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The sign of a - near * factor, exactly; as if near were finite where only the rounding made it infinite."""
    finite = np.isfinite(near) & np.isfinite(factor) & np.isfinite(a)
    overflown = np.isinf(near) & np.isfinite(a) & np.isfinite(factor) & (factor != 0)
    sign = np.where(overflown, -np.sign(near) * np.sign(factor), 0.0)
    underflown = finite & (near == 0)
    sign = np.where(underflown, np.sign(a), sign)
    usual = finite & (near != 0) & (factor != 0)
    if usual.any():
        value, rest, _ = _scaled_fma(-near[usual], factor[usual], a[usual])
        sign[usual] = np.sign(np.where(value == 0, rest, value))
    return sign


def directed(value: np.ndarray, lost: np.ndarray, mode: str) -> np.ndarray:
    """value + lost of float64 in a directed mode, where value is that sum rounded to nearest or close by."""
    return directed_by(*two_sum(value, lost), mode)


def directed_by(near: np.ndarray, rest: np.ndarray, mode: str) -> np.ndarray:
    """A float64 rounded to nearest -> in a directed mode. rest: what was lost by it, of which only the sign counts."""
    infinity = np.inf
    if mode == "rz":
        return np.where((rest != 0) & ((rest < 0) != np.signbit(near)), np.nextafter(near, 0.0), near)
    if mode == "rm":
        return np.where(rest < 0, np.nextafter(near, -infinity), near)
    if mode == "rp":
        return np.where(rest > 0, np.nextafter(near, infinity), near)
    raise ValueError(f"no rounding mode {mode}")


def flush(value: np.ndarray) -> np.ndarray:
    """float32 with every subnormal number replaced by a zero of its sign (.ftz)."""
    tiny = np.abs(value) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), value), value) if tiny.any() else value


def saturate(value: np.ndarray) -> np.ndarray:
    """Clamp to [0, 1]; NaN becomes 0 (.sat)."""
    kind = value.dtype.type
    return np.where(np.isnan(value), kind(0), np.clip(value, kind(0), kind(1)))
