"""Lab 12: softmax over the rows of a matrix in one pass. What is asked, given and run."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.exercises.lab12.shapes import PATIENT, Rows, draw
from labkit.spec import Answer, Exercise

MASKED_ROW, MASKED_FROM = 1, 3
"""In this row, every element from this column on is minus infinity, as under a causal mask."""
LARGE = 300
LOW_ROW = 3
LOW = -400
"""By itself, exp overflows where a row is large, and is 0 in the low row. Both are between 256 and 512 away from 0."""
DEEP_ROW, TOP_COLUMN = 2, 7
DEEP = {"float32": -1e6, "float16": -6e4}
"""All of this row is so low, but for one element halfway to 0, whose softmax is 1: float32 has no fractions of a
softmax that far below 0, however it is computed. Lanes past the end that hold some number in place of minus infinity
would be the row's largest."""


def softmax_inputs(case: Rows, gen: torch.Generator) -> dict:
    """x: (n_rows, n_cols + gap), of which the answer gets the first n_cols columns; rows lie far from 0."""
    x = draw(case, gen, case.n_rows, case.n_cols + case.gap, scale=3.0)
    x[::2] += LARGE
    x[LOW_ROW] += LOW
    x[DEEP_ROW] = DEEP[case.dtype]
    x[DEEP_ROW, TOP_COLUMN] /= 2
    x[MASKED_ROW, MASKED_FROM : case.n_cols] = -float("inf")
    return {"x": x}


def drive_softmax(ans, case: Rows, tree: dict, stage) -> dict:
    x = tree["x"][:, : case.n_cols]
    with stage.meter("traffic"), stage.meter("compiled"):
        out = ans.softmax(x)
    return {"out": out, "contiguous": isinstance(out, Tensor) and out.is_contiguous()}


SOFTMAX = Exercise(
    id="12-softmax",
    title="Softmax in one pass",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("softmax"),),
    public=(Rows(6, 100), Rows(4, 4096), Rows(5, 200, "float16", gap=24)),
    inputs=softmax_inputs,
    drive=drive_softmax,
    run=PATIENT,
    meters=("traffic", "compiled"),
    full_size=Rows(4096, 4096),
)
