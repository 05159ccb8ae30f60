"""Lab 02: hidden formats. PyTorch's come first, because for those a mistake can be diagnosed; then made-up splits."""

from __future__ import annotations

import torch

from grading.hidden import Hidden
from grading.hidden.lab02.made_up_formats import made_up, value
from labkit.exercises.lab02.format_case import FormatCase
from labkit.formats import FP8_E4M3FN, FP16
from labkit.oracles.lab02.library import known, values_of
from labkit.spec import CaseRun


def expected_values(run: CaseRun[FormatCase]) -> dict:
    """What `decode` should return."""
    if known(run.case):
        return {"out": values_of(run.tree["bits"], run.case)}
    values = [value(pattern, run.case.fmt) for pattern in run.tree["bits"].reshape(-1).tolist()]
    return {"out": torch.tensor(values, dtype=torch.float64).reshape(run.tree["bits"].shape)}


DECODE = Hidden(
    id="02-decode",
    cases=lambda rng: (*map(FormatCase.of, (FP8_E4M3FN, FP16)), *made_up(rng, 4, 13)),
    expect=expected_values,
)
