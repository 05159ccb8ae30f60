"""Lab 09: the trace that the notebook reads: of a real GPU where one is shipped, else of a model of one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from labkit.exercises.lab09.traces import as_events, record, step_ops

SHIPPED = Path(__file__).with_name("gpu_trace.json")
"""Where `python -m benchmarks --only gpu_trace` leaves its trace."""


@dataclass(frozen=True)
class ProfilerTrace:
    """first_step: the first step that counts. origin: where the trace comes from, in words."""

    events: list[dict[str, Any]] = field(repr=False)
    first_step: int
    origin: str


def load_trace() -> ProfilerTrace:
    """The trace of a real GPU if one is shipped with the labs, else one of the model; its origin says which."""
    if SHIPPED.exists():
        found = json.loads(SHIPPED.read_text(encoding="utf-8"))
        return ProfilerTrace(found["traceEvents"], found["first_step"], found["origin"])
    steps = [step_ops(2, warm=number >= 2, reduces=True) for number in range(5)]
    noise = 0.75 + 0.5 * torch.rand(sum(map(len, steps)), generator=torch.Generator().manual_seed(9))
    origin = (
        "No GPU: a model of one. The host launches the operations of five training steps of a small transformer, 20 µs "
        "each; names are those of an H100, times are made up. The first two steps also try out kernels."
    )
    return ProfilerTrace(as_events(record(steps, noise.tolist(), 20.0, waits=True, kernel_scale=0.5)), 2, origin)
