"""Lab 02: hidden formats. PyTorch's come first, because for those a mistake can be diagnosed; then made-up splits."""

from __future__ import annotations

import torch

from grading.hidden import Hidden
from grading.hidden.lab02.made_up_formats import made_up, top_pattern, value
from labkit.exercises.lab02.format_case import FormatCase
from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, TF32, FloatFormat
from labkit.oracles.lab02.library import known, patterns_of
from labkit.spec import CaseRun


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


def expected_patterns(run: CaseRun[FormatCase]) -> dict:
    """What `encode` should return."""
    return {"out": patterns_of(run.tree["x"], run.case) if known(run.case) else rounded(run.tree["x"], run.case.fmt)}


ENCODE = Hidden(
    id="02-encode",
    cases=lambda rng: (
        *map(FormatCase.of, (FP16, BF16, FP8_E4M3FN, FP8_E5M2)),
        *made_up(rng, 3, 13),
        FormatCase.of(TF32),
    ),
    expect=expected_patterns,
)
