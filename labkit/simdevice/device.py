"""The simulated device: the names of `torch.cuda`, for code that is handed either of the two.

    sim = SimDevice()
    with sim:
        x = torch.randn(256, 256).to(sim.device)
        y = x @ x              # returns at once; on the device it has hardly begun
        sim.synchronize()
    sim.trace, sim.races

Only operations inside the block are seen. There is one device, and no kernel of one's own can run on it. Of graphs
(`with sim.graph(g): ...`, `g.replay()`) see graphs.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from labkit.simdevice.clock import Clock
from labkit.simdevice.commands import ALL, Command
from labkit.simdevice.counters import MemoryCounters
from labkit.simdevice.graphs import CUDAGraph, Pool
from labkit.simdevice.machine import Machine
from labkit.simdevice.methods import methods_of
from labkit.simdevice.mode import DeviceMode
from labkit.simdevice.races import Race
from labkit.simdevice.stale import StaleInput
from labkit.simdevice.state import DEVICE, DeviceState
from labkit.simdevice.streams import Event, Stream, stream_number
from labkit.simdevice.trace import Span


@dataclass(frozen=True)
class Properties:
    """What `get_device_properties` tells, by the names that PyTorch gives it."""

    name: str
    total_memory: int
    L2_cache_size: int


class SimDevice(MemoryCounters):
    """One asynchronous device with a virtual clock, to be used in a `with` block, once or several times in a row."""

    def __init__(self, machine: Machine | None = None) -> None:
        self.device = DEVICE
        self._state = DeviceState(machine or Machine())
        self._streams = [Stream(self._state, 0)]
        self._capture_stream: Stream | None = None
        self._active: contextlib.ExitStack | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(methods_of(self._state))
            stack.enter_context(DeviceMode(self._state))
            self._active = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        active, self._active = self._active, None
        active.close()

    # The names of torch.cuda.

    def is_available(self) -> bool:
        """True, as on a machine that has a device."""
        return True

    def device_count(self) -> int:
        """1."""
        return 1

    def current_device(self) -> int:
        """0, the number of the only device."""
        return 0

    def get_device_name(self, device: object = None) -> str:
        """The name of the machine."""
        return self._state.machine.name

    def Stream(self, device: object = None, priority: int = 0) -> Stream:
        """A new stream."""
        self._streams.append(Stream(self._state, len(self._streams)))
        return self._streams[-1]

    def Event(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        """A new event, which is not recorded yet."""
        return Event(self._state, enable_timing)

    def default_stream(self, device: object = None) -> Stream:
        """The stream that work goes to unless another one is chosen."""
        return self._streams[0]

    def current_stream(self, device: object = None) -> Stream:
        """The stream that work goes to now."""
        return self._streams[self._state.current_stream]

    def set_stream(self, stream: Stream) -> None:
        """Choose the stream that work goes to from now on."""
        self._state.current_stream = stream_number(self._state, stream)

    @contextlib.contextmanager
    def stream(self, stream: Stream | None) -> Iterator[None]:
        """Choose the stream that work goes to inside a block; None changes nothing."""
        before = self._state.current_stream
        self.set_stream(stream)
        try:
            yield
        finally:
            self._state.current_stream = before

    def CUDAGraph(self, keep_graph: bool = False) -> CUDAGraph:
        """A new graph, into which nothing is captured yet. keep_graph: is there to be ignored."""
        return CUDAGraph(self._state)

    def graph_pool_handle(self) -> Pool:
        """A token for memory that several graphs may share."""
        return (0, self._state.new_graph())

    def is_current_stream_capturing(self) -> bool:
        """Whether what goes to the current stream is captured, and not run."""
        return self._state.capture is not None and self._state.capture.stream == self._state.current_stream

    @contextlib.contextmanager
    def graph(
        self,
        cuda_graph: CUDAGraph,
        pool: Pool | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> Iterator[None]:
        """Capture the work of a block into `cuda_graph`. stream: to capture on, by default a side stream."""
        self.synchronize()
        self.empty_cache()
        if stream is None:
            self._capture_stream = stream = self._capture_stream or self.Stream()
        with self.stream(stream):
            cuda_graph.capture_begin(pool, capture_error_mode)
            try:
                yield
            finally:
                cuda_graph.capture_end()

    def synchronize(self, device: object = None) -> None:
        """Let the host wait until all work queued on every stream is done."""
        self._state.issue(Command("sync", stream=ALL))

    def get_device_properties(self, device: object = None) -> Properties:
        """The device's name, memory and cache, the latter two in bytes."""
        machine = self._state.machine
        return Properties(machine.name, machine.memory_bytes, machine.cache_bytes)

    def empty_cache(self) -> None:
        """Give the segments in which nothing is in use back to the driver, after all queued work is done."""
        self._state.issue(Command("empty"))

    # What only a simulated device can tell.

    @property
    def machine(self) -> Machine:
        """What is simulated."""
        return self._state.machine

    @property
    def commands(self) -> tuple[Command, ...]:
        """What the host has asked of the device, so far."""
        return tuple(self._state.commands)

    @property
    def clock(self) -> Clock:
        """The virtual clock."""
        return self._state.timeline.clock

    @property
    def now_s(self) -> float:
        """The host's time, in virtual seconds."""
        return self.clock.host_s

    @property
    def launches(self) -> tuple[Span, ...]:
        """When the host handed over each kernel, copy and graph, so far."""
        return tuple(self.clock.launches)

    @property
    def trace(self) -> tuple[Span, ...]:
        """What ran when, so far."""
        return tuple(self.clock.spans)

    @property
    def races(self) -> tuple[Race, ...]:
        """Missing waits found so far."""
        return tuple(self._state.timeline.races.found)

    @property
    def stale(self) -> tuple[StaleInput, ...]:
        """Replays found so far that read memory which is gone, or the same input as before."""
        return tuple(self._state.timeline.stale.found)
