"""Run a program on the machine's GPU where there is one, else on a simulated device, and say what ran when.

The program is handed the device's names (`torch.cuda` or a SimDevice) and the device. It is not checked for races on
a GPU, where nothing reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from labkit.devices import has_gpu
from labkit.simdevice.device import SimDevice
from labkit.simdevice.machine import Machine
from labkit.simdevice.races import Race
from labkit.simdevice.trace import Span

DEFAULT_STREAM = 7
"""What CUDA's profiler calls the default stream."""
Prepare = Callable[[Any, torch.device], Callable[[], object]]


@dataclass(frozen=True)
class TracedRun:
    """device_bytes: the peak, with what was there before. host_bytes: the peak, None where nobody counted.

    TracedRun((Span(0, "mm", 5e-6, 9e-6),), duration_s=1e-5, device_bytes=12288, host_bytes=0, races=())
    """

    spans: tuple[Span, ...]
    duration_s: float
    device_bytes: int
    host_bytes: int | None
    races: tuple[Race, ...]


def run_traced(prepare: Prepare, machine: Machine, simulate: bool | None = None) -> TracedRun:
    """What `prepare(cuda, device)()` did; making the program is not measured, only running it.

    simulate: whether to take the simulated device of that `machine`; None takes it where there is no GPU.
    """
    if simulate is None:
        simulate = not has_gpu()
    return _on_simulator(prepare, machine) if simulate else _on_gpu(prepare)


def _on_simulator(prepare: Prepare, machine: Machine) -> TracedRun:
    with SimDevice(machine) as sim:
        program = prepare(sim, sim.device)
        sim.synchronize()
        sim.reset_peak_memory_stats()
        start_s, n_spans, n_races = sim.now_s, len(sim.trace), len(sim.races)
        kept = program()
        sim.synchronize()
        duration_s = sim.now_s - start_s
        del kept
    spans, races = sim.trace[n_spans:], sim.races[n_races:]
    return TracedRun(spans, duration_s, sim.max_memory_allocated(), sim.max_host_bytes, races)


def _on_gpu(prepare: Prepare) -> TracedRun:
    program = prepare(torch.cuda, torch.device("cuda"))
    program()  # the first call pays for loading kernels and for pinning memory
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    # Without acc_events PyTorch warns that it forgets what it recorded before this cycle, of which there is one.
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        kept = program()
        torch.cuda.synchronize()
    del kept
    spans = spans_of(profile.events())
    duration_s = max((span.end_s for span in spans), default=0.0) - min((span.start_s for span in spans), default=0.0)
    return TracedRun(spans, duration_s, torch.cuda.max_memory_allocated(), None, ())


def spans_of(events: Iterable[Any]) -> tuple[Span, ...]:
    """The kernels and copies among a profiler's events; side streams are numbered in the order of their appearance."""
    cuda = torch.autograd.DeviceType.CUDA
    # The regions of record_function, an optimizer's step among them, are there as well, over the kernels in them.
    on_device = [event for event in events if event.device_type == cuda and not event.is_user_annotation]
    on_device.sort(key=lambda event: event.time_range.start)
    numbers = {DEFAULT_STREAM: 0}
    spans = []
    for event in on_device:
        stream = numbers.setdefault(event.device_resource_id, len(numbers))
        kind = _kind(event.name)
        name = event.name if kind == "kernel" else f"copy {kind}"
        spans.append(Span(stream, name, event.time_range.start * 1e-6, event.time_range.end * 1e-6, kind))
    return tuple(spans)


def _kind(name: str) -> str:
    if name.startswith("Memcpy HtoD"):
        return "to device"
    return "to host" if name.startswith("Memcpy DtoH") else "kernel"
