"""The methods of a tensor that ask where it is or take it elsewhere, while a simulated device is active.

Its tensors are CPU tensors to PyTorch, so `x.device` would say "cpu" and `x.cpu()` would do nothing. Hooks of autograd
are called below every mode, so the methods themselves are replaced, and put back when the block ends. So are the
functions that make tensors, `torch.tensor` and `torch.zeros` and their like, which ask for a device, and look for its
driver where that is "cuda", before they dispatch anything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch.nn import functional as F

from labkit.simdevice.state import DEVICE, DeviceState
from labkit.simdevice.storages import tensors_in
from labkit.simdevice.streams import stream_number

_OFF_LIMITS = "can't convert a tensor of the simulated device to numpy: copy it to the host first, with x.cpu()"


_MAKERS = (
    *("arange", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace", "logspace", "ones"),
    *("ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "scalar_tensor"),
    *("tril_indices", "triu_indices", "zeros", "zeros_like"),
)


_COMPOSED = ((F, "one_hot"), (F, "scaled_dot_product_attention"), (torch, "quantile"))
"""Functions of PyTorch that make tensors of their own, where PyTorch believes their arguments to be: on the CPU."""


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
def methods_of(state: DeviceState) -> Iterator[None]:
    """Replace the methods for the length of a block."""
    if "record_stream" in torch.Tensor.__dict__:
        raise RuntimeError("a simulated device is already active: end its `with` block first")
    replaced = [(torch.Tensor, name, method) for name, method in _methods(state).items()]
    replaced += [(torch, name, constructor) for name, constructor in _constructors(state).items()]
    replaced += [(owner, name, _made_there(state, getattr(owner, name))) for owner, name in _COMPOSED]
    before = {(owner, name): vars(owner)[name] for owner, name, _ in replaced if name in vars(owner)}
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, _ in replaced:
            if (owner, name) in before:
                setattr(owner, name, before[owner, name])
            else:
                delattr(owner, name)


def _made_there(state: DeviceState, function: Callable) -> Callable:
    """The function, with what it makes on the device where one of its arguments is there."""

    def call(*args, **kwargs):
        if not any(map(state.storages.on_device, tensors_in(args, kwargs))):
            return function(*args, **kwargs)
        state.makes_on_device = True
        try:
            return function(*args, **kwargs)
        finally:
            state.makes_on_device = False

    return call


def _constructors(state: DeviceState) -> dict[str, object]:
    """Tensors of the device from numbers of the host: made there and copied, for which the host waits, as on CUDA."""
    on_device = state.storages.on_device

    def from_data(make, copies: bool):
        def from_data(data, dtype=None, device=None, requires_grad=False, **kwargs):
            is_tensor = isinstance(data, torch.Tensor)
            there = torch.device(device) if device is not None else data.device if is_tensor else None
            if not (is_tensor and on_device(data)) and (there is None or there.type in ("cpu", "meta")):
                kwargs.update({"requires_grad": True} if requires_grad else {})
                return make(data, dtype=dtype, device=device, **kwargs)
            x = data if is_tensor else make(data, dtype=dtype)
            x = (x.detach() if copies else x).to(device=there, dtype=dtype)
            x = x.clone() if copies and is_tensor else x
            return x.requires_grad_() if requires_grad else x

        return from_data

    def on_named(make):
        def made(*args, device=None, **kwargs):
            if isinstance(device, str | torch.device) and torch.device(device).type == "cuda":
                device = DEVICE
            return make(*args, device=device, **kwargs)

        return made

    return {
        "tensor": from_data(torch.tensor, True),
        "as_tensor": from_data(torch.as_tensor, False),
        **{name: on_named(getattr(torch, name)) for name in _MAKERS},
    }


def _methods(state: DeviceState) -> dict[str, object]:
    host, tensor_to, tensor_tolist = torch.device("cpu"), torch.Tensor.to, torch.Tensor.tolist
    tensor_numpy, tensor_repr, tensor_new = torch.Tensor.numpy, torch.Tensor.__repr__, torch.Tensor.new_tensor
    on_device = state.storages.on_device

    def where(x: torch.Tensor) -> torch.device:
        return DEVICE if on_device(x) else host

    def to(self, *args, **kwargs):
        copy = kwargs.pop("copy", False)
        if args and isinstance(args[0], torch.Tensor):
            args = (where(args[0]), args[0].dtype, *args[1:])
        device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        here = where(self)
        there = here if device is None else host if device.type == "cpu" else DEVICE
        x = self
        if there != here:
            # As CUDA does it: one that does not block converts on the device, one that blocks on the host.
            if dtype is not None and here == (DEVICE if non_blocking else host):
                x = tensor_to(x, dtype=dtype)
            x, copy = Move.apply(x, there, here, non_blocking), False
        if dtype is None and memory_format is None:
            return x.clone() if copy else x
        return tensor_to(x, dtype=dtype or x.dtype, copy=copy, memory_format=memory_format or torch.preserve_format)

    def cuda(self, device=None, non_blocking=False):
        return to(self, DEVICE, non_blocking=non_blocking)

    def cpu(self):
        return to(self, host)

    def is_pinned(self, device=None):
        block = state.storages.of(self)
        return block is not None and block.place == "pinned"

    def pin_memory(self, device=None):
        if on_device(self):
            raise RuntimeError("cannot pin a tensor of the device: only memory of the host can be pinned")
        return self if is_pinned(self) else torch.empty(self.shape, dtype=self.dtype, pin_memory=True).copy_(self)

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
        if device is None and not on_device(self):
            return tensor_new(self, data, dtype=dtype, requires_grad=requires_grad)
        device = self.device if device is None else device
        return torch.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    def record_stream(self, stream):
        state.used_on(self, stream_number(state, stream))

    def tolist(self):
        if on_device(self):
            state.wait_for_value("tolist")
        return tensor_tolist(self)

    def __repr__(self, *, tensor_contents=None):
        # PyTorch formats a tensor with all modes off, so DeviceMode does not see the values being read.
        if on_device(self):
            state.wait_for_value("print")
        return tensor_repr(self, tensor_contents=tensor_contents)

    def numpy(self, *, force=False):
        if on_device(self) and not force:
            raise TypeError(_OFF_LIMITS)
        return tensor_numpy(self, force=force)

    return {
        "__repr__": __repr__,
        "cpu": cpu,
        "cuda": cuda,
        "device": property(where),
        "is_cuda": property(on_device),
        "is_pinned": is_pinned,
        "new_tensor": new_tensor,
        "numpy": numpy,
        "pin_memory": pin_memory,
        "record_stream": record_stream,
        "to": to,
        "tolist": tolist,
    }
