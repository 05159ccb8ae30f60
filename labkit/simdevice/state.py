"""What one simulated device knows: its memory, what the host has asked of it so far, and what follows from that.

Streams, events, the dispatch mode and the replaced methods all report here; none of them is known here.
"""

from __future__ import annotations

import torch

from labkit.simdevice.allocator import NoRoom
from labkit.simdevice.capture import Capture, CaptureError
from labkit.simdevice.commands import Command, Place
from labkit.simdevice.machine import Machine
from labkit.simdevice.storages import Storages
from labkit.simdevice.timeline import DeviceTimeline

DEVICE = torch.device("ipu")
"""A device type that PyTorch knows by name and never touches: what `x.device` says of the simulated device."""


class OutOfMemory(torch.OutOfMemoryError):
    """The device has not that much memory; the message has the numbers. Caught as torch.cuda.OutOfMemoryError."""


class DeviceState:
    """current_stream: the number of the stream that work goes to now.

    makes_on_device: whether tensors that are made for the CPU are the device's, as inside of PyTorch's own functions.
    capture: the capture of a graph that is under way.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.makes_on_device = False
        self.commands: list[Command] = []
        self.storages = Storages(on_free=lambda number: self.issue(Command("free", block=number)))
        self.timeline = DeviceTimeline(machine)
        self.current_stream = 0
        self.capture: Capture | None = None
        self._n_events = self._n_graphs = 0

    def issue(self, command: Command) -> None:
        """Take a command from the host. Raises CaptureError for what may not happen while a graph is captured."""
        if self.capture and (command := self.capture.take(command)) is None:
            return
        self.timeline.run(command)
        self.commands.append(command)

    def new_event(self) -> int:
        """A number for an event or for one of its recordings."""
        self._n_events += 1
        return self._n_events

    def new_graph(self) -> int:
        """A number for a graph."""
        self._n_graphs += 1
        return self._n_graphs

    def allocated(self, tensor: torch.Tensor, place: Place) -> None:
        """Know new memory. Raises OutOfMemory where the device has not so much left."""
        nbytes = tensor.untyped_storage().nbytes()
        if place == "device" and self.timeline.ledger.allocator is None:
            free_bytes = self.machine.memory_bytes - self.timeline.ledger.in_use_bytes()
            if nbytes > free_bytes:
                raise OutOfMemory(
                    f"{self.machine.name} is out of memory: {nbytes:,} bytes were asked for, and {free_bytes:,} of "
                    f"{self.machine.memory_bytes:,} bytes are free"
                )
        block = self.storages.add(tensor, place)
        stream = self.current_stream if place == "device" else 0
        try:
            self.issue(Command("alloc", block=block.number, nbytes=block.nbytes, place=place, stream=stream))
        except NoRoom as error:
            self.storages.drop(tensor)
            raise OutOfMemory(f"{self.machine.name} is out of memory: {error}") from None
        except CaptureError:
            self.storages.drop(tensor)
            raise

    def copied(self, source: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> None:
        """A copy over the link. Only one that is non_blocking and whose host side is pinned lets the host go on."""
        to_device = self.storages.on_device(target)
        host_side = self.storages.of(source if to_device else target)
        pinned = host_side is not None and host_side.place == "pinned"
        self.issue(
            Command(
                "copy",
                "copy to device" if to_device else "copy to host",
                stream=self.current_stream,
                nbytes=target.numel() * target.element_size(),
                place="device" if to_device else "pinned" if pinned else "pageable",
                reads=self.storages.numbers([source]),
                writes=self.storages.numbers([target]),
                blocking=not (non_blocking and pinned),
            )
        )

    def wait_for_value(self, name: str) -> None:
        """The host needs a value: it waits for the current stream, as `.item()` makes it."""
        self.issue(Command("sync", name, stream=self.current_stream))

    def used_on(self, tensor: torch.Tensor, stream: int) -> None:
        """`tensor.record_stream(stream)`: its memory is not handed out again before that stream is done with it."""
        block = self.storages.of(tensor)
        if block is None or block.place != "device":
            raise RuntimeError("record_stream is for tensors of the device, and this one lies on the host")
        self.issue(Command("use", stream=stream, block=block.number))
