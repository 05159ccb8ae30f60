"""Lab 02: hidden tensors to quantize."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab02.int8_quantize import Weights


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
