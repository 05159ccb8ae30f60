"""Lab 02: how a value is rounded into a format."""

from __future__ import annotations

import torch

from labkit.exercises.lab02.format_case import E3M2, FormatCase
from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, TF32
from labkit.spec import Answer, Exercise

MAX_PATTERNS = 90_000
"""Of ties and values in one case of 02-encode: all of fp16's and bf16's, a random choice of tf32's."""


def float_inputs(case: FormatCase, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x: float32 values that land on, between and exactly half-way between the format's values, and beyond; two rows.

    A float32 whose fraction has at most mantissa_bits + 1 bits is a value of the format or a tie. All of them within
    the format's range are taken (a random choice of them where they are too many), then their close neighbours, then
    random patterns of every size, then the special values.
    """
    free_bits = 22 - case.mantissa_bits  # low bits of a float32 fraction that are zero in every tie
    reach = 2 ** (case.exponent_bits - 1)
    first, last = max(127 - reach - case.mantissa_bits, 0), min(127 + reach + 1, 255)
    per_exponent = 2 ** (case.mantissa_bits + 1)
    ties = torch.arange(first * per_exponent, last * per_exponent)
    if len(ties) > MAX_PATTERNS:
        ties = ties[torch.randperm(len(ties), generator=gen)[:MAX_PATTERNS].sort()[0]]
    ties = ties << free_bits
    near = ties[torch.randint(len(ties), (4000,), generator=gen)] + torch.randint(-3, 4, (4000,), generator=gen)
    inside = torch.randint(first << 23, last << 23, (8000,), generator=gen)
    anything = torch.randint(255 << 23, (2000,), generator=gen)
    special = torch.tensor([0, 1, 2**23 - 1, 2**23, (255 << 23) - 1, 255 << 23, (255 << 23) + 1, 0x7FC00000, 2**31 - 1])
    magnitude = torch.cat([special, special, ties, near.clamp(min=0), inside, anything])
    sign = torch.randint(2, magnitude.shape, generator=gen)
    sign[: 2 * len(special)] = torch.arange(2).repeat_interleave(len(special))
    return {"x": (magnitude + (sign << 31)).to(torch.int32).view(torch.float32).reshape(2, -1)}


def one_nan(bits: object, case: FormatCase) -> object:
    """The patterns with every NaN, whatever its sign and payload, written as the one with all ones below the sign."""
    if not isinstance(bits, torch.Tensor) or bits.dtype != torch.int64:
        return bits
    ones = 2 ** (case.fmt.total_bits - 1) - 1
    largest_number = ones - 1 if case.finite_only else ones - (2**case.mantissa_bits - 1)
    within = (bits >= 0) & (bits <= 2 * ones + 1)
    return torch.where(within & ((bits & ones) > largest_number), ones, bits)


ENCODE = Exercise(
    id="02-encode",
    title="Round a value into any format",
    points=4,
    minutes=15,
    difficulty=3,
    answers=(Answer("encode"),),
    public=tuple(FormatCase.of(fmt) for fmt in (FP16, BF16, FP8_E5M2, FP8_E4M3FN, TF32, E3M2)),
    inputs=float_inputs,
    drive=lambda ans, case, tree, stage: {"out": one_nan(ans.encode(tree["x"], case.fmt), case)},
)
