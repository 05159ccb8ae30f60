"""What becomes a graph: the operations captured on one stream, with the memory that they touch, to be run again.

A captured operation has no effect: what it wrote is put back when the capture ends, and the memory that it made is
filled with NaN. One stream is captured; work that another stream would do at the same time, and copies between host and
device, are refused.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from labkit.simdevice.commands import ALL, Command
from labkit.simdevice.storages import Storages, tensors_in

NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing"
CAPTURED_EVENT = "CUDA error: operation not permitted on an event last recorded in a capturing stream"
ISOLATION = "CUDA error: dependency created on uncaptured work in another stream"
INVALIDATED = "CUDA error: operation failed due to a previous error during capture"
ONE_STREAM = "the simulated device captures one stream at a time"


class CaptureError(torch.AcceleratorError):
    """What CUDA refuses while a graph is captured, in its words, and in brackets what the program did."""


@dataclass(frozen=True)
class Address:
    """Where a tensor lies: its memory, which nothing here keeps alive, and its place in it.

    own: whether the capture asked for the memory. It belongs to the graph, so it is there even if no tensor is.
    """

    storage: weakref.ref[torch.UntypedStorage]
    block: int
    nbytes: int
    own: bool
    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    def tensor(self, scratch: dict[int, torch.UntypedStorage]) -> torch.Tensor:
        """The tensor, and where its memory is gone, one in memory of `scratch` (by block), which starts as NaN."""
        storage = self.storage()
        if storage is None:
            if self.block not in scratch:
                count = -(-self.nbytes // self.dtype.itemsize)
                scratch[self.block] = spoil(torch.empty(count, dtype=self.dtype)).untyped_storage()
            storage = scratch[self.block]
        return torch.empty(0, dtype=self.dtype).set_(storage, self.offset, self.size, self.stride)


@dataclass(frozen=True)
class CapturedOperation:
    """One operation with addresses in the place of device tensors. made: of each tensor in its result, the address if
    the operation has made its memory, else None.
    """

    func: Callable[..., Any]
    args: tuple
    kwargs: dict[str, Any]
    made: tuple[Address | None, ...]

    def run(self, scratch: dict[int, torch.UntypedStorage]) -> None:
        """Do it again, at the same addresses."""
        args, kwargs = tree_map_only(Address, lambda address: address.tensor(scratch), (self.args, self.kwargs))
        for address, value in zip(self.made, tensors_in(self.func(*args, **kwargs)), strict=True):
            if address:
                address.tensor(scratch).copy_(value)


class Capture:
    """One capture under way, into the graph of this number. error: the first thing that was refused."""

    def __init__(self, graph: int, stream: int) -> None:
        self.graph, self.stream = graph, stream
        self.operations: list[CapturedOperation] = []
        self.error: CaptureError | None = None
        self._own: set[int] = set()
        self._events: set[int] = set()
        self._before: dict[int, tuple[Address, torch.Tensor]] = {}
        self._random_state = torch.get_rng_state()

    def take(self, command: Command) -> Command | None:
        """What becomes of a command of the host: another one, or none. Raises CaptureError where CUDA does."""
        here = command.stream == self.stream
        if command.kind == "sync":
            if command.event in self._events:
                self._refuse(CAPTURED_EVENT, "the host would wait for it")
            self._refuse(NOT_PERMITTED, f"the host would wait for {command.name or 'the device'}")
        if command.kind in ("empty", "replay"):
            self._refuse(NOT_PERMITTED, {"empty": "empty_cache", "replay": "replay of a graph"}[command.kind])
        if command.kind == "copy":
            if command.blocking:
                self._refuse(NOT_PERMITTED, f"the host would wait for a {command.name}")
            self._refuse(ONE_STREAM, f"and only kernels, and this is a {command.name}: make it before the replay")
        if command.kind == "alloc":
            return self._allocate(command, here)
        if command.kind == "kernel":
            if not here:
                self._refuse(ONE_STREAM, f"{command.name} went to stream {command.stream}")
            return replace(command, kind="capture", graph=self.graph)
        if command.kind == "record" and here:
            self._events.add(command.event)
            return None
        if command.kind == "wait":
            return self._wait(command, here)
        return command

    def remember(self, written: list[torch.Tensor], given: list[torch.Tensor], storages: Storages) -> None:
        """Keep what an operation is about to overwrite. Raises CaptureError if the host's tensors would be copied."""
        if any(tensor.dim() > 0 and not storages.on_device(tensor) for tensor in given):
            self._refuse(NOT_PERMITTED, "a tensor of the host would be copied to the device")
        for tensor in written:
            address = self._address(tensor, storages)
            if address.block not in self._own and address.block not in self._before:
                whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
                self._before[address.block] = address, whole.clone()

    def record(
        self, func, args: tuple, kwargs: dict, result: Any, made: list[torch.Tensor], storages: Storages
    ) -> None:
        """Note an operation that has been computed."""
        new = {storages.of(tensor).number for tensor in made}

        def address(tensor: torch.Tensor) -> Address | torch.Tensor:
            # A number of the host is handed over with the launch: a later replay gets the same.
            return self._address(tensor, storages) if storages.on_device(tensor) else tensor.clone()

        def if_made(tensor: torch.Tensor) -> Address | None:
            block = storages.of(tensor)
            return self._address(tensor, storages) if block and block.number in new else None

        args, kwargs = tree_map_only(torch.Tensor, address, (args, kwargs))
        self.operations.append(CapturedOperation(func, args, kwargs, tuple(map(if_made, tensors_in(result)))))

    def undo(self) -> None:
        """Leave memory and random numbers as they were before; what was made holds NaN until a replay."""
        for address, before in self._before.values():
            if (storage := address.storage()) is not None:
                torch.empty(0, dtype=torch.uint8).set_(storage).copy_(before)
        for address in (address for one in self.operations for address in one.made if address):
            if address.storage() is not None:
                spoil(address.tensor({}))
        torch.set_rng_state(self._random_state)

    def _address(self, tensor: torch.Tensor, storages: Storages) -> Address:
        block, storage = storages.of(tensor), tensor.untyped_storage()
        own = block.number in self._own
        place = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        return Address(weakref.ref(storage), block.number, block.nbytes, own, tensor.dtype, *place)

    def _allocate(self, command: Command, here: bool) -> Command:
        if command.place == "pinned":
            self._refuse(NOT_PERMITTED, "pinned memory of the host was asked for")
        if command.place != "device":
            return command
        if not here:
            self._refuse(NOT_PERMITTED, f"memory outside of the graph's pool was asked for, on stream {command.stream}")
        self._own.add(command.block)
        return replace(command, graph=self.graph)

    def _wait(self, command: Command, here: bool) -> Command | None:
        if command.event in self._events:
            if not here:
                self._refuse(ONE_STREAM, f"stream {command.stream} would wait for an event of it")
            return None
        if here and command.event != ALL:
            self._refuse(ISOLATION, "the stream waits for an event that was recorded elsewhere")
        return command

    def _refuse(self, text: str, what: str) -> None:
        error = CaptureError(f"{text} ({what})")
        self.error = self.error or error
        raise error


def spoil(tensor: torch.Tensor) -> torch.Tensor:
    """Fill with NaN, or with 0 what knows no NaN; returns the tensor."""
    return tensor.fill_(torch.nan if tensor.is_floating_point() or tensor.is_complex() else 0)
