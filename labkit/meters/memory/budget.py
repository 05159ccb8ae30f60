"""The memory meters of exercises: one figure for a block, of tensor storages and of what Python and numpy allocated.

What existed before the block is not counted. A storage is counted once however many views it has. Beside a figure
stand the largest tensors in it, with the lines that made them.
"""

from __future__ import annotations

import functools
import gc
import heapq
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from labkit.measures import add_to
from labkit.meters.memory.late import load_late_modules
from labkit.meters.memory.live import LIFT_FRESH, LiveStorage, LiveStorages
from labkit.meters.memory.sites import NOBODYS, Site, calling_line
from labkit.spec import KiB
from labkit.units import in_bytes

PYTHON_NOISE_BYTES = 128 * KiB
"""What Python's own objects may take before they count: caches and frames differ from run to run, and a thousand views
take 100 KiB."""
TABLES_BYTES = 512 * KiB
"""What of Python's objects beyond that PyTorch may take for tables of its own, which grow when somebody's first call of
an operator comes: one of them by 144 KiB at once. So much that is made in PyTorch's lines, and no numpy array, is no
answer's."""
LOOK_BYTES = 8 * 1024 * KiB
"""What tracing may take itself where its notes are looked through for them: 150,000 objects, half a second. Of more the
tables are a small part."""
N_NAMED = 3
"""How many kinds of tensors are named beside a figure."""


class Made(NamedTuple):
    """Storages by the tensor that they were made for, and the line that made them. Read only when somebody asks.

    Made(4096, (32, 32), torch.float32, ("/home/ada/lab.py", 7))
    """

    n_bytes: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    line: tuple[str, int] | None
    times: int = 1

    def __str__(self) -> str:
        size = f"{self.times} × {in_bytes(self.n_bytes)}" if self.times > 1 else in_bytes(self.n_bytes)
        kind = f"{'×'.join(map(str, self.shape)) or 'scalar'} {str(self.dtype).removeprefix('torch.')}"
        return f"{size}: {kind}" + (f", {Site(*self.line).brief}" if self.line else "")


class NamedStorages(LiveStorages):
    """Live storages that can name the largest of what the block made, at the peak and at the end.

    What it notes is Python's memory, too, which is measured beside it: so it notes little, and makes words of it later.
    """

    def __init__(self) -> None:
        super().__init__()
        self.largest_at_peak: tuple[Made, ...] = ()
        self.python_before_bytes = 0
        self.python_peak_bytes = 0
        self._named_bytes = 0

    def about(self, tensor: torch.Tensor, func: object | None) -> Made | None:
        if func is None:
            return None
        return Made(tensor.untyped_storage().nbytes(), tuple(tensor.shape), tensor.dtype, calling_line(self.thread))

    def makes(self, func: object, tensor: torch.Tensor) -> bool:
        """All but what from_numpy makes known: that memory is numpy's, and counted as Python's."""
        return func is not LIFT_FRESH or tensor.untyped_storage().resizable()

    def ends(self, entry: LiveStorage) -> None:
        # Until something is freed again, what is alive is what there was at the peak.
        if self.made_bytes == self.most_made_bytes > self._named_bytes:
            self._named_bytes, self.largest_at_peak = self.made_bytes, self.largest([entry])

    def largest(self, others: Sequence[LiveStorage] = ()) -> tuple[Made, ...]:
        """What the block made that takes most, equals told as one; `others` are counted as alive."""
        made = Counter(entry.about for entry in (*self._live.values(), *others) if entry.made)
        largest = heapq.nlargest(N_NAMED, made.items(), key=lambda item: item[0].n_bytes * item[1])
        return tuple(one._replace(times=times) for one, times in largest)


@dataclass
class MeteredBlock:
    """What a block made, in tensor storages and in Python's memory: at the most, and what is left at its end."""

    storages: NamedStorages
    python_most_bytes: int = 0
    python_left_bytes: int = 0
    largest_left: tuple[Made, ...] = ()

    @property
    def peak_bytes(self) -> int:
        return self.storages.most_made_bytes + self.python_most_bytes

    @property
    def saved_bytes(self) -> int:
        return self.storages.made_bytes + self.python_left_bytes

    @property
    def largest_at_peak(self) -> tuple[Made, ...]:
        at_its_end = self.storages.made_bytes == self.storages.most_made_bytes
        return self.largest_left if at_its_end else self.storages.largest_at_peak


@contextmanager
def measure_memory(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Put `peak_bytes` into `measured`: the most that the block held at once beyond what it was given.

    The peaks of tensor storages and of Python's allocator are added, though they may fall at different moments: an
    upper bound, tight where only one of them moves. Of Python's, only what is beyond PYTHON_NOISE_BYTES counts, and
    beyond tables of PyTorch's own, so that the figure of an answer that works on tensors is the same on every run.
    """
    block = MeteredBlock(NamedStorages())
    try:
        with _follow(block):
            yield
    finally:
        _put(measured, held, "peak_bytes", block.peak_bytes, _named(block.largest_at_peak, block.python_most_bytes))


@contextmanager
def measure_saved(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Put `saved_bytes` into `measured`: what the block made and what is still alive at its end, wherever it hides.

    The block's result, as long as somebody holds it, is part of the figure.
    """
    block = MeteredBlock(NamedStorages())
    try:
        with _follow(block):
            yield
    finally:
        _put(measured, held, "saved_bytes", block.saved_bytes, _named(block.largest_left, block.python_left_bytes))


@dataclass(frozen=True)
class Held:
    """What is held at a moment, and the names of the largest of it: `Held(4096, ("4.0 KiB: 32×32 float32",))`."""

    n_bytes: int
    named: tuple[str, ...]


def held_now() -> Held | None:
    """What the outermost measured block of this thread has made and is alive; None outside of one.

    Tensors, and of Python's memory what is beyond PYTHON_NOISE_BYTES and TABLES_BYTES: nobody looks whose that is. What
    was let go of lately counts no more, also where only the garbage collector could tell.
    """
    block = next((mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, NamedStorages)), None)
    if block is None:
        return None
    gc.collect(1)
    free_bytes = block.python_before_bytes + PYTHON_NOISE_BYTES + TABLES_BYTES
    python_bytes = max(tracemalloc.get_traced_memory()[0] - free_bytes, 0)
    return Held(block.made_bytes + python_bytes, tuple(_named(block.largest(), python_bytes)))


def _put(measured: dict, held: dict | None, name: str, n_bytes: int, named: list[str]) -> None:
    """The largest figure of several blocks counts."""
    add_to(measured, name, n_bytes)
    if held is not None and measured[name] == n_bytes:
        held[name] = named


def _named(largest: Sequence[Made], python_bytes: int) -> list[str]:
    """What takes most, in words and in order."""
    parts = [(one.n_bytes * one.times, str(one)) for one in largest]
    if python_bytes:
        parts.append((python_bytes, f"{in_bytes(python_bytes)}: numpy arrays and other objects of Python"))
    return [text for _, text in heapq.nlargest(N_NAMED, parts, key=lambda part: part[0])]


@contextmanager
def _follow(block: MeteredBlock) -> Iterator[None]:
    load_late_modules()
    tracing = _tracing()
    before_bytes = block.storages.python_before_bytes = tracing.begin(block.storages)
    try:
        with block.storages:
            try:
                yield
            finally:
                block.largest_left = block.storages.largest()
    finally:
        now_bytes, most_bytes = tracemalloc.get_traced_memory()
        most_bytes = max(most_bytes, block.storages.python_peak_bytes)
        free_bytes = before_bytes + PYTHON_NOISE_BYTES
        if most_bytes > free_bytes and tracemalloc.is_tracing():
            tracing.note_peak()
            free_bytes += min(_in_tables_bytes(), TABLES_BYTES)
            tracemalloc.reset_peak()  # looking takes memory, which is nobody's
        tracing.end(block.storages)
        block.python_most_bytes = max(most_bytes - free_bytes, 0)
        block.python_left_bytes = max(now_bytes - free_bytes, 0)


class _Tracing:
    """Python's allocations are traced for the whole process: as long as any thread has an open block, and no longer."""

    def __init__(self) -> None:
        self._open: set[NamedStorages] = set()
        self._is_ours = False

    def begin(self, storages: NamedStorages) -> int:
        """The bytes that are traced already."""
        if not tracemalloc.is_tracing():
            tracemalloc.start()
            self._is_ours = True
        self.note_peak()
        tracemalloc.reset_peak()
        self._open.add(storages)
        return tracemalloc.get_traced_memory()[0]

    def end(self, storages: NamedStorages) -> None:
        self._open.discard(storages)
        # Threads of a process group free tensors when they please. One that waits in a traced allocation while tracing
        # stops crashes the process (CPython gh-128679, mended in 3.12.9), so there tracing goes on.
        if self._is_ours and not self._open and not _has_process_group():
            tracemalloc.stop()
            self._is_ours = False

    def note_peak(self) -> None:
        """Before the peak is forgotten: every open block keeps it."""
        most_bytes = tracemalloc.get_traced_memory()[1]
        for storages in tuple(self._open):
            storages.python_peak_bytes = max(storages.python_peak_bytes, most_bytes)


@functools.cache
def _tracing() -> _Tracing:
    return _Tracing()


def _in_tables_bytes() -> int:
    """What there is of Python's objects, numpy's arrays left out, that was made in lines of PyTorch or of this meter.

    Where a block lies in another one, what that had made before is in it as well. Of very many objects: 0.
    """
    if tracemalloc.get_tracemalloc_memory() > LOOK_BYTES:
        return 0
    objects = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, 0)])
    found = objects.statistics("filename")
    return sum(one.size for one in found if one.traceback[0].filename.startswith(NOBODYS))


def _has_process_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
