"""Peak memory of a block of code: the bytes of live tensor storages, and what Python and numpy allocated.

A storage is counted once however many views it has, from the operation that makes it until it is freed. What
existed before the block is not counted: the peak is what the block adds. It does not see scratch memory inside an
operator, nor which line or category the bytes belong to.
"""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._pytree import tree_leaves

from labkit.meters.dispatch import Meter
from labkit.spec import KiB

PYTHON_NOISE_BYTES = 64 * KiB
"""What Python's own objects may take before they count: caches and frames differ from run to run."""


class LiveStorages(Meter):
    """Counts the bytes of the storages that operations make and that are still alive."""

    def __init__(self) -> None:
        super().__init__()
        self.live_bytes = 0
        self.peak_bytes = 0
        self._counted_bytes: dict[int, int] = {}
        self._given_bytes: dict[int, int] = {}
        self._watched: dict[int, weakref.ref] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for tensor in tree_leaves((args, kwargs)):
            self._see(tensor, made_here=False)
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            self._see(tensor, made_here=True)
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        return result

    def _see(self, tensor: object, made_here: bool) -> None:
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._counted_bytes:
            self._watched[key] = weakref.ref(storage, lambda _, key=key: self._forget(key))
            # What came from before the block is known from here on, so that a view of it is not taken for new.
            self._given_bytes[key] = 0 if made_here else storage.nbytes()
            self._counted_bytes[key] = 0
        counted_bytes = max(storage.nbytes() - self._given_bytes[key], 0)
        self.live_bytes += counted_bytes - self._counted_bytes[key]
        self._counted_bytes[key] = counted_bytes

    def _forget(self, key: int) -> None:
        self._watched.pop(key, None)
        self._given_bytes.pop(key, None)
        self.live_bytes -= self._counted_bytes.pop(key, 0)


@contextmanager
def measure_memory(measured: dict[str, float]) -> Iterator[None]:
    """Put `peak_bytes` into `measured`: the most that the block held at once beyond what it was given.

    The peaks of tensor storages and of Python's allocator are added, though they may fall at different moments: an
    upper bound, tight where only one of them moves. Of Python's, only what is beyond PYTHON_NOISE_BYTES counts, so
    that the figure of an answer that works on tensors is the same on every run.
    """
    storages = LiveStorages()
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before_bytes = tracemalloc.get_traced_memory()[0]
    try:
        with storages:
            yield
    finally:
        python_bytes = max(tracemalloc.get_traced_memory()[1] - before_bytes - PYTHON_NOISE_BYTES, 0)
        if not was_tracing:
            tracemalloc.stop()
        measured["peak_bytes"] = max(measured.get("peak_bytes", 0), storages.peak_bytes + python_bytes)
