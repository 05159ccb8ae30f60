"""Time several ways of doing one thing in turns, so that what the machine does meanwhile befalls all of them alike.

On a GPU by events, after a write over far more memory than the cache holds; dry, by the host's clock, which says
nothing about a GPU. What is run has been run before: nothing is warmed up here but the GPU's clocks.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

FLUSH_BYTES = 2 * 2**30
"""Takes about half a millisecond to write: as long as the host needs to hand out a backward pass, so that the events
contain no waiting for the host."""
WARM_UP_S = 0.3
QUERY = "clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw"


@dataclass(frozen=True)
class Times:
    """In milliseconds: half of the turns were faster than median; a fifth was faster than low, and slower than high."""

    median_ms: float
    low_ms: float
    high_ms: float
    n: int


def in_turns(ways: Mapping[str, Callable[[], object]], n_turns: int, dry: bool) -> dict[str, Times]:
    """The times of each way."""
    measured = _by_host(ways, n_turns) if dry else _by_events(ways, n_turns)
    return {
        name: Times(*(round(float(one), 6) for one in np.quantile(times, (0.5, 0.2, 0.8))), len(times))
        for name, times in measured.items()
    }


def _by_host(ways: Mapping[str, Callable[[], object]], n_turns: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(n_turns):
        for name, way in ways.items():
            before = time.perf_counter()
            way()
            times[name].append(1e3 * (time.perf_counter() - before))
    return times


def _by_events(ways: Mapping[str, Callable[[], object]], n_turns: int) -> dict[str, list[float]]:
    flusher = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    until = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < until:
        for way in ways.values():
            way()
        torch.cuda.synchronize()
    pairs: dict[str, list[tuple]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(n_turns):
        # Each comes behind each other one.
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flusher.zero_()
            start.record()
            ways[name]()
            end.record()
            pairs[name].append((start, end))
        torch.cuda.synchronize()
    return {name: [start.elapsed_time(end) for start, end in each] for name, each in pairs.items()}


def clocks() -> dict[str, str] | None:
    """What the driver says of the first GPU at this moment; None where it says nothing."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={QUERY}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return dict(zip(QUERY.split(","), done.stdout.strip().split(", "))) if done.returncode == 0 else None
