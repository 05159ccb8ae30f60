"""Lab 02: what a bit pattern means."""

from __future__ import annotations

import torch

from labkit.exercises.lab02.format_case import E3M2, FormatCase
from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32
from labkit.spec import Answer, Exercise


def pattern_inputs(case: FormatCase, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """bits: every pattern of a format of up to 16 bits, a row for each sign; else random ones and all corners."""
    if case.fmt.total_bits <= 16:
        return {"bits": torch.arange(2**case.fmt.total_bits).reshape(2, -1)}
    top, full = 2**case.exponent_bits - 1, 2**case.mantissa_bits - 1
    corners = torch.cartesian_prod(
        torch.tensor([0, 1]), torch.tensor([0, 1, top // 2, top - 1, top]), torch.tensor([0, 1, full // 2, full])
    )
    sign, exponent, mantissa = corners.unbind(1)
    corners = (sign << (case.fmt.total_bits - 1)) + (exponent << case.mantissa_bits) + mantissa
    return {"bits": torch.cat([corners, torch.randint(2**case.fmt.total_bits, (8000,), generator=gen)])}


DECODE = Exercise(
    id="02-decode",
    title="The value of a bit pattern",
    points=3,
    minutes=10,
    difficulty=2,
    answers=(Answer("decode"),),
    public=tuple(FormatCase.of(fmt) for fmt in (FP16, BF16, FP8_E5M2, FP8_E4M3FN, FP32, TF32, E3M2)),
    inputs=pattern_inputs,
    drive=lambda ans, case, tree, stage: {"out": ans.decode(tree["bits"], case.fmt)},
)
