"""Lab 02: the limits of a format."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from labkit.exercises.lab02.format_case import E3M2, FormatCase
from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32
from labkit.spec import Answer, Exercise


def drive_table(ans, case: FormatCase, tree: dict, stage) -> object:
    """The four limits as plain numbers; a one-element tensor counts as its number."""
    limits = ans.format_limits(case.fmt)
    if not isinstance(limits, Mapping):
        return limits
    return {
        name: value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
        for name, value in limits.items()
    }


FORMAT_TABLE = Exercise(
    id="02-format-table",
    title="The limits of a format",
    points=2,
    minutes=6,
    difficulty=1,
    answers=(Answer("format_limits"),),
    public=tuple(FormatCase.of(fmt) for fmt in (FP32, TF32, BF16, FP16, FP8_E5M2, FP8_E4M3FN, E3M2)),
    inputs=lambda case, gen: {},
    drive=drive_table,
)
