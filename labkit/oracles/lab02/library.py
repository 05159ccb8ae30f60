"""What PyTorch's own formats say: the value of a pattern, the pattern of a value, the limits of a format.

It answers for formats that PyTorch has, for tf32, which is float32 with 13 bits less, and for one tiny format that is
written out. For any other split it raises LookupError.
"""

from __future__ import annotations

import torch

from labkit.exercises.lab02.format_case import E3M2, FormatCase
from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32, FloatFormat

_DTYPES = {
    (FP32.exponent_bits, FP32.mantissa_bits, False): (torch.float32, torch.int32),
    (FP16.exponent_bits, FP16.mantissa_bits, False): (torch.float16, torch.int16),
    (BF16.exponent_bits, BF16.mantissa_bits, False): (torch.bfloat16, torch.int16),
    (FP8_E5M2.exponent_bits, FP8_E5M2.mantissa_bits, False): (torch.float8_e5m2, torch.uint8),
    (FP8_E4M3FN.exponent_bits, FP8_E4M3FN.mantissa_bits, True): (torch.float8_e4m3fn, torch.uint8),
}
# The 32 patterns of e3m2 without a sign, from 0 to infinity and the three NaN.
_E3M2 = (
    *(0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 1.75),
    *(2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, torch.inf, torch.nan, torch.nan, torch.nan),
)


# The library's formats come first among the cases: who only fails on a made-up split has written constants.
HARD_CODED = (
    "The formats that PyTorch has are right, and a made-up one is not. Compute every constant (bias, largest "
    "exponent, shifts) from fmt.exponent_bits, fmt.mantissa_bits and fmt.finite_only."
)


def as_format(case: FormatCase) -> str:
    """The format as a student can write it: FloatFormat("e4m3fn", 4, 3, finite_only=True)."""
    rule = ", finite_only=True" if case.finite_only else ""
    return f'FloatFormat("{case.format}", {case.exponent_bits}, {case.mantissa_bits}{rule})'


def same_values(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where two tensors of values agree; a NaN agrees with any other."""
    return (one == other) | (one.isnan() & other.isnan())


def census(wrong: torch.Tensor, kinds: dict[str, torch.Tensor]) -> str | None:
    """Which kinds of elements are wrong, and how many of each: "wrong: 12 of 238 normal numbers, all 2 NaN"."""
    parts = []
    for name, where in kinds.items():
        n_wrong, n = int((wrong & where).sum()), int(where.sum())
        if n_wrong:
            parts.append(f"all {n:,} {name}" if n_wrong == n else f"{n_wrong:,} of {n:,} {name}")
    return f"wrong: {', '.join(parts)}; all others are right" if parts and len(parts) < len(kinds) else None


def fields(pattern: int, case: FormatCase) -> str:
    """A pattern as "sign exponent mantissa" in binary: "0 01111 0000000000"."""
    text = f"{pattern & (2**case.fmt.total_bits - 1):0{case.fmt.total_bits}b}"
    return f"{text[0]} {text[1 : 1 + case.exponent_bits]} {text[1 + case.exponent_bits :]}"


def _is(case: FormatCase, fmt: FloatFormat) -> bool:
    return (case.exponent_bits, case.mantissa_bits, case.finite_only) == (
        fmt.exponent_bits,
        fmt.mantissa_bits,
        fmt.finite_only,
    )


def known(case: FormatCase) -> bool:
    """Whether PyTorch has this format, or float32 contains it (tf32)."""
    return (case.exponent_bits, case.mantissa_bits, case.finite_only) in _DTYPES or _is(case, TF32)


def _dtypes(case: FormatCase) -> tuple[torch.dtype, torch.dtype]:
    return _DTYPES[case.exponent_bits, case.mantissa_bits, case.finite_only]


def values_of(bits: torch.Tensor, case: FormatCase) -> torch.Tensor:
    """float64 values of int64 patterns, by reinterpreting the bits as the dtype."""
    if _is(case, TF32):
        return values_of(bits << 13, FormatCase.of(FP32))
    if _is(case, E3M2):
        table = torch.tensor(_E3M2, dtype=torch.float64)
        return torch.cat([table, -table])[bits]
    dtype, carrier = _dtypes(case)
    return bits.to(carrier).view(dtype).to(torch.float64)


def patterns_of(x: torch.Tensor, case: FormatCase) -> torch.Tensor:
    """int64 patterns of float32 values, by PyTorch's cast; every NaN as all ones below the sign."""
    ones = 2 ** (case.fmt.total_bits - 1) - 1
    if _is(case, E3M2):
        return _nearest_e3m2(x)
    if _is(case, TF32):
        bits = _rounded_to_tf32(x).view(torch.int32).to(torch.int64) >> 13
    else:
        dtype, carrier = _dtypes(case)
        if case.finite_only:
            # PyTorch saturates from 2.13 on and gave NaN before; the clamp makes the rule the same everywhere.
            limit = torch.finfo(dtype).max
            x = x.clamp(-limit, limit)
        bits = x.to(dtype).view(carrier).to(torch.int64)
    return torch.where(x.isnan(), ones, bits & (2 * ones + 1))


def _nearest_e3m2(x: torch.Tensor) -> torch.Tensor:
    """By the distance to each of its values; infinity stands where the next power of two, 16, would be."""
    table = torch.tensor(_E3M2[:29], dtype=torch.float64).clamp(max=16)
    distance = (x.to(torch.float64).abs().clamp(max=16)[..., None] - table).abs()
    near = distance == distance.amin(-1, keepdim=True)
    even = 1 - torch.arange(len(table)) % 2
    pattern = (near * (1 + even)).argmax(-1)
    return torch.where(x.isnan(), 31, pattern + 32 * torch.signbit(x))


def _rounded_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """float32 values with a fraction of 10 bits. There is no such cast, but a cast to float16 leaves 10 bits too."""
    fraction, exponent = torch.frexp(x)
    scale = torch.tensor(2.0, dtype=torch.float64).pow(exponent.to(torch.float64))
    normal = (fraction.to(torch.float16).to(torch.float64) * scale).to(torch.float32)
    # Near the bottom of float32's range: there 2**112 x has float16's own spacing, subnormals included.
    tiny = (x * 2.0**112).to(torch.float16).to(torch.float64) * 2.0**-112
    return torch.where(x.isfinite(), torch.where(x.abs() < 2.0**-120, tiny.to(torch.float32), normal), x)


def limits_of(case: FormatCase) -> dict[str, float]:
    """eps, max, smallest_normal and smallest_subnormal, from torch.finfo and from pattern 1."""
    if _is(case, E3M2):
        return {"eps": 0.25, "max": 14.0, "smallest_normal": 0.25, "smallest_subnormal": 0.0625}
    if _is(case, TF32):
        # The exponent range of float32, the fraction of float16.
        wide, eps = torch.finfo(torch.float32), torch.finfo(torch.float16).eps
        top = values_of(torch.tensor([2 ** (case.fmt.total_bits - 1) - 1 - 2**case.mantissa_bits]), case)
        limits = {"eps": eps, "max": float(top), "smallest_normal": wide.smallest_normal}
    else:
        info = torch.finfo(_dtypes(case)[0])
        limits = {"eps": info.eps, "max": info.max, "smallest_normal": info.smallest_normal}
    return limits | {"smallest_subnormal": float(values_of(torch.tensor([1]), case))}
