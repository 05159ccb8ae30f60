"""The simulated device: the names of `torch.cuda`, for code that is handed either of the two.

    sim = SimDevice()
    with sim:
        x = torch.randn(256, 256).to(sim.device)
        y = x @ x              # returns at once; on the device it has hardly begun
        sim.synchronize()
    sim.trace, sim.races

Only operations inside the block are seen. There is one device, and no kernel of one's own can run on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch

from labkit.simdevice.allocator import NoRoom
from labkit.simdevice.clock import Clock
from labkit.simdevice.commands import ALL, Command, Place
from labkit.simdevice.counters import MemoryCounters
from labkit.simdevice.event import Event
from labkit.simdevice.machine import Machine
from labkit.simdevice.methods import methods_of
from labkit.simdevice.mode import Watch
from labkit.simdevice.races import Race
from labkit.simdevice.replay import Replay
from labkit.simdevice.storages import Storages
from labkit.simdevice.stream import Stream
from labkit.simdevice.trace import Span

DEVICE = torch.device("ipu")
"""A device type that PyTorch knows by name and never touches: what `x.device` says of the simulated device."""


class OutOfMemory(torch.OutOfMemoryError):
    """The device has not that much memory; the message has the numbers. Caught as torch.cuda.OutOfMemoryError."""


@dataclass(frozen=True)
class Properties:
    """What `get_device_properties` tells, by the names that PyTorch gives it."""

    name: str
    total_memory: int
    L2_cache_size: int


class SimDevice(MemoryCounters):
    """One asynchronous device with a virtual clock, to be used in a `with` block, once or several times in a row."""

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine or Machine()
        self.device = DEVICE
        self.makes_on_device = False
        self.commands: list[Command] = []
        self.storages = Storages(on_free=lambda number: self.issue(Command("free", block=number)))
        self._replay = Replay(self.machine)
        self._streams = [Stream(self, 0)]
        self._current = self._streams[0]
        self._n_events = 0
        self._active: contextlib.ExitStack | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(methods_of(self))
            stack.enter_context(Watch(self))
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
        return self.machine.name

    def Stream(self, device: object = None, priority: int = 0) -> Stream:
        """A new stream."""
        self._streams.append(Stream(self, len(self._streams)))
        return self._streams[-1]

    def Event(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        """A new event, which is not recorded yet."""
        return Event(self, self.new_number(), enable_timing)

    def default_stream(self, device: object = None) -> Stream:
        """The stream that work goes to unless another one is chosen."""
        return self._streams[0]

    def current_stream(self, device: object = None) -> Stream:
        """The stream that work goes to now."""
        return self._current

    def set_stream(self, stream: Stream) -> None:
        """Choose the stream that work goes to from now on."""
        self._current = self.stream_or_current(stream)

    @contextlib.contextmanager
    def stream(self, stream: Stream | None) -> Iterator[None]:
        """Choose the stream that work goes to inside a block; None changes nothing."""
        before, self._current = self._current, self.stream_or_current(stream)
        try:
            yield
        finally:
            self._current = before

    def synchronize(self, device: object = None) -> None:
        """Let the host wait until all work queued on every stream is done."""
        self.issue(Command("sync", stream=ALL))

    def get_device_properties(self, device: object = None) -> Properties:
        """The device's name, memory and cache, the latter two in bytes."""
        return Properties(self.machine.name, self.machine.memory_bytes, self.machine.cache_bytes)

    def empty_cache(self) -> None:
        """Give the segments in which nothing is in use back to the driver, after all queued work is done."""
        self.issue(Command("empty"))

    # What only a simulated device can tell.

    @property
    def clock(self) -> Clock:
        """The virtual clock."""
        return self._replay.clock

    @property
    def now_s(self) -> float:
        """The host's time, in virtual seconds."""
        return self.clock.host_s

    @property
    def launches(self) -> tuple[Span, ...]:
        """When the host handed over each kernel and copy, so far."""
        return tuple(self.clock.launches)

    @property
    def trace(self) -> tuple[Span, ...]:
        """What ran when, so far."""
        return tuple(self.clock.spans)

    @property
    def races(self) -> tuple[Race, ...]:
        """Missing waits found so far."""
        return tuple(self._replay.races.found)

    # What the other modules of this package report.

    def issue(self, command: Command) -> None:
        """Take a command from the host."""
        self._replay.run(command)
        self.commands.append(command)

    def new_number(self) -> int:
        """A number for an event or for one of its recordings."""
        self._n_events += 1
        return self._n_events

    def stream_or_current(self, stream: Stream | None) -> Stream:
        """The stream, if one is given. Raises TypeError for a stream of something else."""
        if stream is None:
            return self._current
        if not isinstance(stream, Stream) or stream._sim is not self:
            raise TypeError(f"{stream!r} is not a stream of this simulated device: make it with sim.Stream()")
        return stream

    def allocated(self, tensor: torch.Tensor, place: Place) -> None:
        """Know new memory. Raises OutOfMemory where the device has not so much left."""
        if place == "device" and self.allocator is None:
            free_bytes = self.machine.memory_bytes - self.memory_allocated()
            if tensor.untyped_storage().nbytes() > free_bytes:
                raise OutOfMemory(
                    f"{self.machine.name} is out of memory: {tensor.untyped_storage().nbytes():,} bytes were asked "
                    f"for, and {free_bytes:,} of {self.machine.memory_bytes:,} bytes are free"
                )
        block = self.storages.add(tensor, place)
        stream = self._current.number if place == "device" else 0
        try:
            self.issue(Command("alloc", block=block.number, nbytes=block.nbytes, place=place, stream=stream))
        except NoRoom as error:
            self.storages.drop(tensor)
            raise OutOfMemory(f"{self.machine.name} is out of memory: {error}") from None

    def copied(self, source: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> None:
        """A copy over the link. Only one that is non_blocking and whose host side is pinned lets the host go on."""
        to_device = self.storages.on_device(target)
        host_side = self.storages.of(source if to_device else target)
        pinned = host_side is not None and host_side.place == "pinned"
        self.issue(
            Command(
                "copy",
                "copy to device" if to_device else "copy to host",
                stream=self._current.number,
                nbytes=target.numel() * target.element_size(),
                place="device" if to_device else "pinned" if pinned else "pageable",
                reads=self.storages.numbers([source]),
                writes=self.storages.numbers([target]),
                blocking=not (non_blocking and pinned),
            )
        )

    def wait_for_value(self, name: str) -> None:
        """The host needs a value: it waits for the current stream, as `.item()` makes it."""
        self.issue(Command("sync", name, stream=self._current.number))

    def used_on(self, tensor: torch.Tensor, stream: Stream) -> None:
        """`tensor.record_stream(stream)`: its memory is not handed out again before that stream is done with it."""
        block = self.storages.of(tensor)
        if block is None or block.place != "device":
            raise RuntimeError("record_stream is for tensors of the device, and this one lies on the host")
        self.issue(Command("use", stream=self.stream_or_current(stream).number, block=block.number))
