"""Sees every operation that PyTorch dispatches while a simulated device is active, computes it, and says what it was.

Operations on device memory become kernels of the current stream, operations between the two memories become copies,
and reading a value waits for the device. When they run is not decided here.
"""

from __future__ import annotations

import torch

from labkit.meters.dispatch import Meter
from labkit.meters.traffic.eager import written_by
from labkit.simdevice.commands import Command
from labkit.simdevice.costs import bytes_of, flops_of
from labkit.simdevice.state import DEVICE, DeviceState
from labkit.simdevice.storages import tensors_in

aten = torch.ops.aten
EMPTY = {aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided}
READ_BY_THE_HOST = {aten._local_scalar_dense, aten.equal, aten.nonzero, aten.masked_select, aten._unique2}
"""What has to know a value of the device, or how long its own result is, before the host can go on."""
HOST_MIXES = {"index", "index_put", "index_put_", "_index_put_impl_", "fill_"}
"""What takes tensors of both memories: indices of the host for a tensor of the device, and a number to fill with."""


class DeviceMode(Meter):
    """The dispatch mode of one simulated device."""

    def __init__(self, state: DeviceState) -> None:
        super().__init__()
        self._state = state

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        device, pinned = kwargs.pop("device", None), kwargs.pop("pin_memory", None)
        packet = func._overloadpacket
        if device is not None and self._state.makes_on_device:
            device = DEVICE
        if packet is aten._to_copy and device is not None:
            return self._moved(func, args, kwargs, to_device=device.type != "cpu")
        if packet is aten.copy_ and self._on_device(args[0]) != self._on_device(args[1]):
            return self._copied_into(func, args, kwargs)
        if device is not None:
            kwargs["device"] = torch.device("cpu")
        given, written = tensors_in(args, kwargs), written_by(func, args, kwargs)
        on_device = self._runs_on_device(packet.__name__, given, written, device)
        if on_device and self._state.capture:
            self._state.capture.remember(written, given, self._state.storages)
        result = func(*args, **kwargs)
        made = self._register(result, "device" if on_device else "pinned" if pinned else None)
        reads = [tensor for tensor in given if not any(tensor is other for other in written)]
        if _takes_the_shape_alone(packet.__name__):
            reads = []
        if func.is_view:
            return result
        if not on_device:
            self._by_host(packet.__name__, reads, written)
        elif packet not in EMPTY and (made or written or packet in READ_BY_THE_HOST):
            self._kernel(func, packet.__name__, args, kwargs, result, reads, [*written, *made])
            if self._state.capture:
                self._state.capture.record(func, args, kwargs, result, made, self._state.storages)
            if packet in READ_BY_THE_HOST or _by_mask(packet, args):
                self._state.wait_for_value(packet.__name__)
        return result

    def _on_device(self, tensor: torch.Tensor) -> bool:
        return self._state.storages.on_device(tensor)

    def _runs_on_device(
        self, name: str, given: list[torch.Tensor], written: list[torch.Tensor], device: torch.device | None
    ) -> bool:
        """As PyTorch decides it: all tensors lie in one memory, but the host's may be single numbers that are read."""
        if device is not None and not given:
            return device.type != "cpu"
        on_device = any(map(self._on_device, given))
        strangers = [tensor for tensor in given if tensor.dim() > 0 and not self._on_device(tensor)]
        strangers += [tensor for tensor in written if tensor.dim() == 0 and not self._on_device(tensor)]
        if on_device and strangers and name not in HOST_MIXES:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but {name} was given one of the simulated device and "
                "one of the host: copy it to the device first"
            )
        return on_device if device is None else device.type != "cpu"

    def _register(self, result: object, place: str | None) -> list[torch.Tensor]:
        """Know the storages that the operation has made; returns the tensors that lie in them."""
        made = [tensor for tensor in tensors_in(result) if place and self._state.storages.of(tensor) is None]
        for tensor in made:
            self._state.allocated(tensor, place)
        return made

    def _kernel(self, func, name, args, kwargs, result, reads, writes) -> None:
        numbers = self._state.storages.numbers
        self._state.issue(
            Command(
                "kernel",
                name.strip("_"),
                stream=self._state.current_stream,
                nbytes=bytes_of(args, kwargs, result),
                flops=flops_of(func, args, kwargs, result),
                reads=numbers(reads),
                writes=numbers(writes),
            )
        )

    def _by_host(self, name: str, reads: list[torch.Tensor], writes: list[torch.Tensor]) -> None:
        """An operation of the host counts where it touches memory that the device copies to or from."""
        numbers = self._state.storages.numbers
        if numbers(reads) or numbers(writes):
            self._state.issue(Command("host", name.strip("_"), reads=numbers(reads), writes=numbers(writes)))

    def _moved(self, func, args, kwargs, to_device: bool):
        """A copy into new memory on the other side. To the host it is pinned if non_blocking, as on CUDA."""
        non_blocking = kwargs.pop("non_blocking", False)
        (source,) = args
        result = func(source, **kwargs)
        self._state.allocated(result, "device" if to_device else "pinned" if non_blocking else "pageable")
        if self._on_device(source) != to_device:
            self._state.copied(source, result, non_blocking)
        return result

    def _copied_into(self, func, args, kwargs):
        target, source, *rest = args
        non_blocking = kwargs.get("non_blocking", bool(rest and rest[0]))
        result = func(target, source)
        self._state.copied(source, target, non_blocking)
        return result


def _takes_the_shape_alone(name: str) -> bool:
    """zeros_like, new_empty and their kind look at no value of what they are given."""
    return name.endswith("_like") or name.startswith("new_")


def _by_mask(packet: torch._ops.OpOverloadPacket, args: tuple) -> bool:
    """Indexing by a mask: how many elements come out depends on values."""
    return packet is aten.index and any(tensor.dtype in (torch.bool, torch.uint8) for tensor in tensors_in(args[1:]))
