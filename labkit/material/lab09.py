"""Lab 09: the trace that the notebook reads, which benchmarks/gpu_trace.py has recorded on a real GPU.

The hidden traces of its exercise are not real: they come from a model (`labkit.exercises.lab09.traces`).
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).with_name("gpu_trace.json.gz")


@dataclass(frozen=True)
class ProfilerTrace:
    """first_step: the first step that counts. origin: where the trace comes from, in words.

    ProfilerTrace([{"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 1}], 2, "A real GPU: ...")
    """

    events: list[dict[str, Any]] = field(repr=False)
    first_step: int
    origin: str


def load_trace() -> ProfilerTrace:
    """Five training steps of a small transformer, as PyTorch's profiler saw them."""
    found = json.loads(gzip.decompress(SHIPPED.read_bytes()))
    return ProfilerTrace(found["traceEvents"], found["first_step"], found["origin"])
