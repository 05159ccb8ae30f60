"""What a way of timing does on a simulated device: what it reads, and what the device does meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from labkit.simdevice.device import SimDevice
from labkit.simdevice.machine import Machine
from labkit.simdevice.trace import Span

TimingMethod = Callable[[Callable[[], object], Any, torch.device, Callable[[], float]], float]
"""measure(fn, cuda, device, now_s) -> milliseconds."""


@dataclass(frozen=True)
class TimingProbe:
    """clock_reads_s: when the host's clock was read; events_s: when the device passed each event, as recorded.

    TimingProbe(0.4, (Span(0, "mm", 0.0, 4e-4),), (Span(-1, "mm", 0.0, 5e-6, "launch"),), (0.0, 4e-4), ())
    """

    read_ms: float
    spans: tuple[Span, ...]
    launches: tuple[Span, ...]
    clock_reads_s: tuple[float, ...]
    events_s: tuple[float, ...]


def probe_timing(
    measure: TimingMethod, prepare: Callable[[torch.device], Callable[[], object]], machine: Machine
) -> TimingProbe:
    """Let `measure` time the function that `prepare(device)` makes, on a fresh device of that machine."""
    reads_s: list[float] = []
    with SimDevice(machine) as sim:
        fn = prepare(sim.device)
        sim.synchronize()
        n_spans, n_launches, n_commands = len(sim.trace), len(sim.launches), len(sim.commands)

        def now_s() -> float:
            reads_s.append(sim.now_s)
            return sim.now_s

        read_ms = measure(fn, sim, sim.device, now_s)
        # Spans are noted when work is queued, so only the wait at the end is still to come, and it is not the method's.
        spans = sim.trace[n_spans:]
        sim.synchronize()
        records = [one.event for one in sim.commands[n_commands:] if one.kind == "record"]
        events_s = tuple(sim.clock.event_s(event) for event in records)
    return TimingProbe(read_ms, spans, sim.launches[n_launches:], tuple(reads_s), events_s)
