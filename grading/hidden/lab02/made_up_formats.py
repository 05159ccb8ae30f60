"""Lab 02: splits that no library has, and what is true of them.

It is worked out one number at a time in Python, by another road than the solution's.
"""

from __future__ import annotations

import math
import random

from labkit.exercises.lab02.format_case import FormatCase
from labkit.formats import FloatFormat


def value(pattern: int, fmt: FloatFormat) -> float:
    """The value of one pattern."""
    exponent = pattern >> fmt.mantissa_bits & (2**fmt.exponent_bits - 1)
    mantissa = pattern & (2**fmt.mantissa_bits - 1)
    sign = -1.0 if pattern >> (fmt.total_bits - 1) else 1.0
    if exponent == 2**fmt.exponent_bits - 1:
        if fmt.finite_only and mantissa == 2**fmt.mantissa_bits - 1:
            return math.nan
        if not fmt.finite_only:
            return math.nan if mantissa else sign * math.inf
    implicit = 2**fmt.mantissa_bits if exponent else 0
    scale = max(exponent, 1) - (2 ** (fmt.exponent_bits - 1) - 1) - fmt.mantissa_bits
    return sign * math.ldexp(mantissa + implicit, scale)


def top_pattern(fmt: FloatFormat) -> int:
    """The pattern of the largest finite number."""
    ones = 2 ** (fmt.total_bits - 1) - 1
    return ones - 1 if fmt.finite_only else ones - 2**fmt.mantissa_bits


def limits(fmt: FloatFormat) -> dict[str, float]:
    """eps, max, smallest_normal and smallest_subnormal, each as a difference or a value of patterns."""
    one = (2 ** (fmt.exponent_bits - 1) - 1) << fmt.mantissa_bits
    return {
        "eps": value(one + 1, fmt) - value(one, fmt),
        "max": value(top_pattern(fmt), fmt),
        "smallest_normal": value(2**fmt.mantissa_bits, fmt),
        "smallest_subnormal": value(1, fmt),
    }


def made_up(rng: random.Random, n: int, max_bits: int) -> list[FormatCase]:
    """Splits that no library has, every second one without infinities."""
    cases = []
    for index in range(n):
        exponent_bits = rng.choice([2, 3, 4, 6, 7])
        mantissa_bits = rng.randint(2, min(max_bits - 1 - exponent_bits, 9))
        finite_only = index % 2 == 0
        if (exponent_bits, mantissa_bits, finite_only) == (4, 3, True):
            mantissa_bits = 4
        name = f"e{exponent_bits}m{mantissa_bits}{'fn' if finite_only else ''}"
        cases.append(FormatCase(name, exponent_bits, mantissa_bits, finite_only))
    return cases
