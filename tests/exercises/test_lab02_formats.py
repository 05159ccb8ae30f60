"""Lab 02's expectations against a second library: made-up splits, ties, and the oracle's own tables."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from grading.hidden.lab02.encode import rounded
from grading.hidden.lab02.made_up_formats import limits, top_pattern, value
from labkit.exercises.lab02.encode import float_inputs, one_nan
from labkit.exercises.lab02.format_case import E3M2, FormatCase
from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32, FloatFormat
from labkit.oracles.lab02.decode import DECODE
from labkit.oracles.lab02.encode import ENCODE
from labkit.oracles.lab02.library import limits_of, patterns_of, values_of
from labkit.spec import CaseRun

KNOWN = (TF32, BF16, FP16, FP8_E5M2, FP8_E4M3FN, E3M2)
SECOND = {
    FloatFormat("e3m4", 3, 4): ml_dtypes.float8_e3m4,
    FloatFormat("e4m3", 4, 3): ml_dtypes.float8_e4m3,
    FP8_E5M2: ml_dtypes.float8_e5m2,
    FP8_E4M3FN: ml_dtypes.float8_e4m3fn,
    BF16: ml_dtypes.bfloat16,
}
# These have no NaN: all patterns but the last mean the same as under our finite-only rule.
SECOND_WITHOUT_NAN = {
    FloatFormat("e3m2fn", 3, 2, finite_only=True): ml_dtypes.float6_e3m2fn,
    FloatFormat("e2m3fn", 2, 3, finite_only=True): ml_dtypes.float6_e2m3fn,
    FloatFormat("e2m1fn", 2, 1, finite_only=True): ml_dtypes.float4_e2m1fn,
}


def named(formats) -> list:
    return [pytest.param(fmt, id=fmt.name) for fmt in formats]


def inputs(fmt: FloatFormat) -> torch.Tensor:
    return float_inputs(FormatCase.of(fmt), torch.Generator().manual_seed(1))["x"]


def carrier(dtype) -> type:
    return np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16


@pytest.mark.parametrize("fmt", named(SECOND | SECOND_WITHOUT_NAN))
def test_values_agree_with_ml_dtypes(fmt: FloatFormat) -> None:
    dtype = (SECOND | SECOND_WITHOUT_NAN)[fmt]
    patterns = np.arange(2**fmt.total_bits)
    if fmt in SECOND_WITHOUT_NAN:
        patterns = patterns[patterns % 2 ** (fmt.total_bits - 1) <= top_pattern(fmt)]
    with np.errstate(invalid="ignore"):  # signalling NaN among the patterns
        theirs = patterns.astype(carrier(dtype)).view(dtype).astype(np.float64)
    ours = np.array([value(int(pattern), fmt) for pattern in patterns])
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(np.signbit(ours)[ours == 0], np.signbit(theirs)[theirs == 0])


@pytest.mark.parametrize("fmt", named(SECOND | SECOND_WITHOUT_NAN))
def test_rounding_agrees_with_ml_dtypes(fmt: FloatFormat) -> None:
    dtype = (SECOND | SECOND_WITHOUT_NAN)[fmt]
    x = inputs(fmt)
    x = x[~x.isnan()]
    if fmt.finite_only:
        x = x[x.abs() <= value(top_pattern(fmt), fmt)]  # beyond it the library gives NaN where we saturate
    theirs = x.numpy().astype(dtype).view(carrier(dtype)).astype(np.int64)
    np.testing.assert_array_equal(rounded(x, fmt).numpy(), theirs)


@pytest.mark.parametrize("fmt", named(KNOWN))
def test_the_oracle_and_the_hidden_expectation_agree(fmt: FloatFormat) -> None:
    case, x = FormatCase.of(fmt), inputs(fmt)
    assert torch.equal(patterns_of(x, case), one_nan(rounded(x, fmt), case))
    assert limits_of(case) == limits(fmt)
    bits = torch.arange(0, 2**fmt.total_bits, 7 if fmt.total_bits > 16 else 1)
    ours = torch.tensor([value(pattern, fmt) for pattern in bits.tolist()], dtype=torch.float64)
    assert torch.equal(values_of(bits, case).nan_to_num(), ours.nan_to_num())


def test_the_limits_of_fp32_agree() -> None:
    assert limits_of(FormatCase.of(FP32)) == limits(FP32)


@pytest.mark.parametrize("fmt", named((FP16, BF16, FP8_E5M2, FP8_E4M3FN, E3M2)))
def test_every_tie_is_asked(fmt: FloatFormat) -> None:
    values = torch.tensor([value(pattern, fmt) for pattern in range(top_pattern(fmt) + 1)], dtype=torch.float64)
    ties = ((values[1:] + values[:-1]) / 2).to(torch.float32)
    assert torch.isin(ties, inputs(fmt).abs()).all()


def test_every_nan_counts_as_one_pattern_and_numbers_stay() -> None:
    case = FormatCase.of(FP16)
    bits = torch.tensor([0x7C00, 0x7C01, 0x7E00, 0xFE00, 0xFC00, 0x7BFF, -1, 2**16])
    assert one_nan(bits, case).tolist() == [0x7C00, 0x7FFF, 0x7FFF, 0x7FFF, 0xFC00, 0x7BFF, -1, 2**16]
    case = FormatCase.of(FP8_E4M3FN)
    assert one_nan(torch.tensor([0x7E, 0x7F, 0xFE, 0xFF]), case).tolist() == [0x7E, 0x7F, 0xFE, 0x7F]


def test_what_no_hint_explains_is_counted_by_its_kind() -> None:
    """An encoder that is wrong for every other normal number, and a decoder that is wrong for NaN and one zero."""
    case = FormatCase.of(FP16)
    x = inputs(FP16)
    right = patterns_of(x, case)
    wrong = torch.where((right % 2 == 1) & (x.abs() < 1) & (x.abs() >= 2.0**-14), right + 7, right)
    run = CaseRun(case, {"x": x}, {"out": wrong}, expect=ENCODE.expect)
    note = ENCODE.fact(run)
    assert note.startswith("wrong: ") and " other normal numbers" in note and note.endswith("all others are right")
    assert "NaN" not in note and "infinities" not in note
    bits = torch.arange(2**16)
    values = values_of(bits, case).nan_to_num(nan=1.0, posinf=torch.inf, neginf=-torch.inf)
    values[0] = 3.0
    run = CaseRun(case, {"bits": bits}, {"out": values}, expect=DECODE.expect)
    assert DECODE.fact(run) == "wrong: 1 of 2 zeros, all 2,046 NaN; all others are right"
