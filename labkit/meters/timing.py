"""How long a piece of code takes: one call for a GPU, the CPU, or any device that has the names of `torch.cuda`.

    print(bench(lambda: a @ b))
    1.24 ms [1.23, 1.31] (median [p20, p80] of 80 calls; CUDA events, cold cache; first call 310 ms)

It does not say what the time was spent on, and does not lock the clocks of the machine: on one that is busy with other
things, look at the spread.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from labkit.devices import has_gpu

BUDGET_MS = 200.0
"""How long the repeats may take together, unless their number is given."""
FEWEST, MOST = 10, 100
LEAST_HOST_MS = 1e-3
"""Below this, reading the host's clock takes a good part of what it reads."""
HOST_CACHE_BYTES = 64 * 2**20
"""More than the last-level cache of most desktop CPUs."""


class Device(Protocol):
    """What bench needs of a device: `torch.cuda` has it, and so has a simulated one."""

    device: Any

    def Event(self, enable_timing: bool) -> Any: ...

    def synchronize(self) -> None: ...

    def get_device_properties(self, device: int) -> Any: ...


@dataclass(frozen=True)
class Timing:
    """times_ms: of each repeat; first_ms: of the very first call, which is not among them.

        Timing(times_ms=(0.41, 0.40, 0.43), first_ms=12.0, method="host clock", cold=False)

    method: "CUDA events" or "host clock"; cold: whether the cache was flushed before each repeat.
    """

    times_ms: tuple[float, ...]
    first_ms: float
    method: str
    cold: bool

    @property
    def median_ms(self) -> float:
        """As many repeats were faster as were slower."""
        return self.quantile_ms(0.5)

    def quantile_ms(self, q: float) -> float:
        """The time that a part q of the repeats did not exceed, linear in between."""
        return float(np.quantile(self.times_ms, q))

    def __str__(self) -> str:
        spread = f"[{_amount(self.quantile_ms(0.2))}, {_amount(self.quantile_ms(0.8))}]"
        calls = f"{len(self.times_ms)} call{'s' * (len(self.times_ms) > 1)}"
        cache = "cold" if self.cold else "warm"
        return (
            f"{_amount(self.median_ms)} ms {spread} (median [p20, p80] of {calls}; {self.method}, {cache} cache; "
            f"first call {_amount(self.first_ms)} ms)"
        )


def bench(
    fn: Callable[[], object],
    cuda: Device | None = None,
    *,
    n_warmup: int = 3,
    n_repeats: int | None = None,
    flush_cache: bool | None = None,
    now_s: Callable[[], float] | None = None,
) -> Timing:
    """Time `fn()`: a first call, n_warmup more, then the repeats, each on its own.

    cuda: `torch.cuda`, or a simulated device inside its `with` block, for work of that device. now_s: a clock of the
    host, as `time.perf_counter`, for work of the host. Without either, the GPU where there is one, else
    `time.perf_counter`. n_repeats: None takes as many as fit in 200 ms, from 10 to 100. flush_cache: before each
    repeat, write over more memory than the cache holds, outside of what is timed; by default on a device, and not on
    the host.

    Raises TypeError where fn cannot be called, and ValueError for numbers that make no sense, for work that what times
    it cannot see, and for a time too short to be told.
    """
    if not callable(fn):
        kind = type(fn).__name__
        raise TypeError(f"bench calls a function many times, and was given a {kind}: write bench(lambda: ...)")
    if n_warmup < 0 or (n_repeats is not None and n_repeats < 1):
        raise ValueError(f"n_warmup is 0 or more and n_repeats 1 or more; they are {n_warmup} and {n_repeats}")
    unasked = cuda is None and now_s is None and has_gpu()
    if unasked:
        cuda = torch.cuda
    cold = cuda is not None if flush_cache is None else flush_cache
    if cuda is None:
        run, method = _OnHost(fn, cold, now_s or time.perf_counter), "host clock"
    else:
        run, method = _OnDevice(fn, cold, cuda), "CUDA events"
    (first_ms,) = run.times_ms(1, flush=False)
    for _ in range(n_warmup):
        result = fn()
        if cuda is None:
            _refuse_device_work(result)
        elif unasked:
            _refuse_host_work(result)
        del result
    n_repeats = n_repeats or _repeats_for(float(np.median(run.times_ms(3))))
    timing = Timing(tuple(run.times_ms(n_repeats)), first_ms, method, cold)
    _refuse_too_short(timing)
    return timing


class _OnDevice:
    """Events before and behind each call. The host waits only when all repeats are queued."""

    def __init__(self, fn: Callable[[], object], cold: bool, cuda: Device) -> None:
        self._fn, self._cuda, self._flusher = fn, cuda, None
        if cold:
            n_bytes = 2 * cuda.get_device_properties(0).L2_cache_size
            # A simulated device says by which name PyTorch knows it; torch.cuda.device is something else.
            device = cuda.device if isinstance(cuda.device, torch.device) else "cuda"
            self._flusher = torch.empty(n_bytes, dtype=torch.int8, device=device) if n_bytes else None

    def times_ms(self, n: int, flush: bool = True) -> list[float]:
        pairs = [[self._cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(n)]
        self._cuda.synchronize()
        for start, end in pairs:
            if flush and self._flusher is not None:
                self._flusher.zero_()
            start.record()
            self._fn()
            end.record()
        self._cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]


class _OnHost:
    """The host's clock around each call, with the garbage collector off, as in `timeit`."""

    def __init__(self, fn: Callable[[], object], cold: bool, now_s: Callable[[], float]) -> None:
        self._fn, self._now_s = fn, now_s
        self._flusher = torch.empty(HOST_CACHE_BYTES, dtype=torch.int8) if cold else None

    def times_ms(self, n: int, flush: bool = True) -> list[float]:
        collects, times = gc.isenabled(), []
        gc.disable()
        try:
            for _ in range(n):
                if flush and self._flusher is not None:
                    self._flusher.zero_()
                before_s = self._now_s()
                self._fn()
                times.append(1e3 * (self._now_s() - before_s))
        finally:
            if collects:
                gc.enable()
        return times


def _repeats_for(one_ms: float) -> int:
    return FEWEST if one_ms >= BUDGET_MS / FEWEST else MOST if one_ms <= BUDGET_MS / MOST else int(BUDGET_MS / one_ms)


def _refuse_device_work(result: object) -> None:
    if any(leaf.is_cuda for leaf in _tensors(result)):
        raise ValueError(
            "fn works on a device, and the host's clock cannot see when that is done: hand the device over, "
            "bench(fn, torch.cuda), or bench(fn, sim) for a simulated one"
        )


def _refuse_host_work(result: object) -> None:
    tensors = _tensors(result)
    if tensors and not any(leaf.is_cuda for leaf in tensors):
        raise ValueError(
            "fn returns tensors of the CPU, and the GPU's clock cannot see when the CPU is done: ask for the host's, "
            "bench(fn, now_s=time.perf_counter), or say that fn works on the GPU, bench(fn, torch.cuda)"
        )


def _tensors(result: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _refuse_too_short(timing: Timing) -> None:
    if timing.method == "host clock" and timing.median_ms < LEAST_HOST_MS:
        raise ValueError(
            f"a call takes {1e6 * timing.median_ms:.0f} ns, and reading the clock takes about as much: let fn do the "
            "work many times in a loop, and divide"
        )
    if timing.method != "host clock" and timing.median_ms <= 0:
        raise ValueError(
            "nothing ran on the device between the events: does fn work on tensors of the host, or is the `with` block "
            "of the simulated device over?"
        )


def _amount(ms: float) -> str:
    """Three digits that count."""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"
