"""`limit_memory`: an out-of-memory error where a device with this much memory would raise one.

The machine itself needs room for the tensor that does not fit until the error has been dealt with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from labkit.meters.memory.profile import MemoryProfile
from labkit.meters.memory.track import device_type_of, tracked
from labkit.meters.memory.tracker import Tracker
from labkit.units import in_bytes


class Capped(Tracker):
    """A tracker that raises as soon as more is alive than `limit_bytes`."""

    def __init__(self, limit_bytes: float, device_type: str | None) -> None:
        super().__init__(device_type)
        self.limit_bytes = limit_bytes
        self._before_bytes = 0

    def before(self, func: object) -> None:
        super().before(func)
        self._before_bytes = self.live_bytes

    def after(self, func: object) -> None:
        super().after(func)
        wanted_bytes = self.live_bytes - self._before_bytes
        if self.live_bytes > self.limit_bytes and wanted_bytes > 0:
            free_bytes = max(self.limit_bytes - self._before_bytes, 0)
            # " out of memory." is what programs that try again with less look for.
            raise torch.OutOfMemoryError(
                f"limit_memory: out of memory. Tried to allocate {in_bytes(wanted_bytes)} in {self.ops[-1]}; the limit "
                f"is {in_bytes(self.limit_bytes)}, of which {in_bytes(free_bytes)} is free."
            )


@contextmanager
def limit_memory(
    limit_bytes: float,
    model: torch.nn.Module | None = None,
    optimizer: object = None,
    batch: object = None,
    *,
    device: str | torch.device | None = None,
) -> Iterator[MemoryProfile]:
    """Run the block with `limit_bytes` of memory; what is named, or used without having been made here, takes its part.

    Raises torch.OutOfMemoryError, as CUDA does, from the operation that does not fit; ValueError for a limit that what
    is named exceeds already; for a model what `track_memory` raises.
    """
    tracker = Capped(limit_bytes, device_type_of(model, batch, device))
    with tracked(tracker, model, optimizer, batch) as profile:
        if profile.live_bytes > limit_bytes:
            raise ValueError(
                f"limit_memory({in_bytes(limit_bytes)}): what the block starts with takes "
                f"{in_bytes(profile.live_bytes)} already"
            )
        yield profile
