"""Lab 02, first half: hidden cases. PyTorch's formats come first, because for those a mistake can be diagnosed; then
made-up splits, whose expectation is worked out here one number at a time in Python, by another road than the
solution's.
"""

from __future__ import annotations

import math
import random

import torch

from grading.hidden import Hidden
from labkit.exercises.lab02.formats import FormatCase, Weights
from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, TF32, FloatFormat
from labkit.oracles.lab02.library import known, patterns_of, values_of


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


def rounded(x: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
    """The patterns of float32 values: the nearest entry in the table of all non-negative values, ties to even."""
    table = torch.tensor([value(pattern, fmt) for pattern in range(top_pattern(fmt) + 1)], dtype=torch.float64)
    # One entry more stands for everything beyond the largest number; half-way to it is where overflow begins.
    table = torch.cat([table, 2 * table[-1:] - table[-2:-1]])
    size = x.to(torch.float64).abs()
    above = torch.searchsorted(table, size).clamp(1, len(table) - 1)
    below = above - 1
    up, down = table[above] - size, size - table[below]
    nearest = torch.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    ones = 2 ** (fmt.total_bits - 1) - 1
    nearest = nearest.clamp(max=top_pattern(fmt)) if fmt.finite_only else nearest
    patterns = nearest + (torch.signbit(x).to(torch.int64) << (fmt.total_bits - 1))
    return torch.where(x.isnan(), ones, patterns)


def limits(fmt: FloatFormat) -> dict[str, float]:
    """eps, max, smallest_normal and smallest_subnormal, each as a difference or a value of patterns."""
    one = (2 ** (fmt.exponent_bits - 1) - 1) << fmt.mantissa_bits
    return {
        "eps": value(one + 1, fmt) - value(one, fmt),
        "max": value(top_pattern(fmt), fmt),
        "smallest_normal": value(2**fmt.mantissa_bits, fmt),
        "smallest_subnormal": value(1, fmt),
    }


def expected_values(case: FormatCase, tree: dict) -> dict:
    """What `decode` should return."""
    if known(case):
        return {"out": values_of(tree["bits"], case)}
    values = [value(pattern, case.fmt) for pattern in tree["bits"].reshape(-1).tolist()]
    return {"out": torch.tensor(values, dtype=torch.float64).reshape(tree["bits"].shape)}


def expected_patterns(case: FormatCase, tree: dict) -> dict:
    """What `encode` should return."""
    return {"out": patterns_of(tree["x"], case) if known(case) else rounded(tree["x"], case.fmt)}


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


DECODE = Hidden(
    id="02-decode",
    cases=lambda rng: (*map(FormatCase.of, (FP8_E4M3FN, FP16)), *made_up(rng, 4, 13)),
    expect=expected_values,
)

ENCODE = Hidden(
    id="02-encode",
    cases=lambda rng: (
        *map(FormatCase.of, (FP16, BF16, FP8_E4M3FN, FP8_E5M2)),
        *made_up(rng, 3, 13),
        FormatCase.of(TF32),
    ),
    expect=expected_patterns,
)

FORMAT_TABLE = Hidden(
    id="02-format-table",
    cases=lambda rng: (*map(FormatCase.of, (FP8_E4M3FN, FP16)), *made_up(rng, 6, 16)),
    expect=lambda case, tree: limits(case.fmt),
)


def quantize_cases(rng: random.Random) -> tuple[Weights, ...]:
    """Other shapes and axes than the public ones, every kind of data once."""
    rows, cols, depth = rng.randint(9, 40), rng.randint(9, 40), rng.randint(3, 9)
    return (
        Weights((rows, cols), symmetric=True, channel_dim=None, kind="outlier"),
        Weights((rows, cols), symmetric=True, channel_dim=1, kind="outlier"),
        Weights((rows, cols, depth), symmetric=False, channel_dim=None, kind="normal"),
        Weights((rows, cols, depth), symmetric=False, channel_dim=1, kind="outlier"),
        Weights((rows, cols), symmetric=False, channel_dim=None, kind="positive"),
        Weights((depth, rows), symmetric=False, channel_dim=1, kind="constant"),
        Weights((depth, rows, cols), symmetric=rng.random() < 0.5, channel_dim=0, kind="zeros"),
        Weights((rows,), symmetric=False, channel_dim=None, kind="all zeros"),
        Weights((rows, cols), symmetric=True, channel_dim=None, kind="small"),
        Weights((cols, rows), symmetric=False, channel_dim=None, kind="half-way"),
    )


INT8_QUANTIZE = Hidden(id="02-int8-quantize", cases=quantize_cases)
