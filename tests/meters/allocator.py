"""The peak of a block by PyTorch's own allocator, from the profiler's memory events on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import torch


def allocator_peak_bytes(block: Callable[[], object]) -> int:
    """The most bytes that the CPU allocator had given out at once, beyond what it had at the start of the block."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        block()
    live_bytes = most_bytes = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live_bytes += event.nbytes()
            most_bytes = max(most_bytes, live_bytes)
    return most_bytes
