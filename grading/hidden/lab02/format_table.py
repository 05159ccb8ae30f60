"""Lab 02: hidden formats. PyTorch's come first, because for those a mistake can be diagnosed; then made-up splits."""

from __future__ import annotations

from grading.hidden import Hidden
from grading.hidden.lab02.made_up_formats import limits, made_up
from labkit.exercises.lab02.format_case import FormatCase
from labkit.formats import FP8_E4M3FN, FP16

FORMAT_TABLE = Hidden(
    id="02-format-table",
    cases=lambda rng: (*map(FormatCase.of, (FP8_E4M3FN, FP16)), *made_up(rng, 6, 16)),
    expect=lambda run: limits(run.case.fmt),
)
