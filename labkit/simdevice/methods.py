"""The methods of a tensor that ask where it is or take it elsewhere, while a simulated device is active.

Its tensors are CPU tensors to PyTorch, so `x.device` would say "cpu" and `x.cpu()` would do nothing. Hooks of autograd
are called below every mode, so the methods themselves are replaced, and put back when the block ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from labkit.simdevice.device import SimDevice

_OFF_LIMITS = "can't convert a tensor of the simulated device to numpy: copy it to the host first, with x.cpu()"


class Move(torch.autograd.Function):
    """A copy to the other memory; its gradient is copied the other way."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, device: torch.device, back: torch.device, non_blocking: bool) -> torch.Tensor:
        ctx.device, ctx.back = device, back
        return torch.ops.aten._to_copy(x, device=device, non_blocking=non_blocking)

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple:
        return Move.apply(grad, ctx.back, ctx.device, False), None, None, None


@contextlib.contextmanager
def methods_of(sim: SimDevice) -> Iterator[None]:
    """Replace the methods for the length of a block."""
    if "record_stream" in torch.Tensor.__dict__:
        raise RuntimeError("a simulated device is already active: end its `with` block first")
    replaced = _methods(sim)
    before = {name: torch.Tensor.__dict__[name] for name in replaced if name in torch.Tensor.__dict__}
    for name, method in replaced.items():
        setattr(torch.Tensor, name, method)
    try:
        yield
    finally:
        for name in replaced:
            if name in before:
                setattr(torch.Tensor, name, before[name])
            else:
                delattr(torch.Tensor, name)


def _methods(sim: SimDevice) -> dict[str, object]:
    host, tensor_to, tensor_tolist = torch.device("cpu"), torch.Tensor.to, torch.Tensor.tolist
    tensor_numpy = torch.Tensor.numpy
    on_device = sim.storages.on_device

    def where(x: torch.Tensor) -> torch.device:
        return sim.device if on_device(x) else host

    def to(self, *args, **kwargs):
        copy = kwargs.pop("copy", False)
        if args and isinstance(args[0], torch.Tensor):
            args = (where(args[0]), args[0].dtype, *args[1:])
        device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        here = where(self)
        there = here if device is None else host if device.type == "cpu" else sim.device
        x = self
        if there != here:
            x, copy = Move.apply(self, there, here, non_blocking), False
        if dtype is None and memory_format is None:
            return x.clone() if copy else x
        return tensor_to(x, dtype=dtype or x.dtype, copy=copy, memory_format=memory_format or torch.preserve_format)

    def cuda(self, device=None, non_blocking=False):
        return to(self, sim.device, non_blocking=non_blocking)

    def cpu(self):
        return to(self, host)

    def is_pinned(self, device=None):
        block = sim.storages.of(self)
        return block is not None and block.place == "pinned"

    def pin_memory(self, device=None):
        if on_device(self):
            raise RuntimeError("cannot pin a tensor of the device: only memory of the host can be pinned")
        return self if is_pinned(self) else torch.empty(self.shape, dtype=self.dtype, pin_memory=True).copy_(self)

    def record_stream(self, stream):
        sim.used_on(self, stream)

    def tolist(self):
        if on_device(self):
            sim.wait_for_value("tolist")
        return tensor_tolist(self)

    def numpy(self, *, force=False):
        if on_device(self) and not force:
            raise TypeError(_OFF_LIMITS)
        return tensor_numpy(self, force=force)

    return {
        "cpu": cpu,
        "cuda": cuda,
        "device": property(where),
        "is_cuda": property(on_device),
        "is_pinned": is_pinned,
        "numpy": numpy,
        "pin_memory": pin_memory,
        "record_stream": record_stream,
        "to": to,
        "tolist": tolist,
    }
