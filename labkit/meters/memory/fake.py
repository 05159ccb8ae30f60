"""Fake tensors that whole training programs can run on: the known obstacles, each removed in one place.

A fake tensor has a shape, a dtype and a device and no memory. Programs ask it for values all the same; the answers
given here never decide about a size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch

from labkit.meters.dispatch import Meter


class Answers(Meter):
    """Answers `.item()` and truth values on fake data: true, or one."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            dtype = args[0].dtype
            return True if dtype is torch.bool else 1.0 if dtype.is_floating_point else 1
        if func is torch.ops.aten.equal.default:
            return True
        return func(*args, **(kwargs or {}))


@contextmanager
def fake_tensors() -> Iterator[None]:
    """In the block, every tensor that is made is fake, on the CPU (fake CUDA tensors need a CUDA build of PyTorch)."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with ExitStack() as stack:
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(Answers())
        # Module.to() swaps the tensors, which fails for fake ones, because their mode holds references to them.
        stack.enter_context(mock.patch.object(torch.utils, "swap_tensors", _overwrite))
        for module, name in _tracing_tests():
            # A model library takes fake tensors for a compiler at work, and then builds what a real run would skip.
            stack.enter_context(mock.patch.object(module, name, lambda *args, **kwargs: False))
        yield


def _overwrite(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Give a parameter the data of another one, which is all that a conversion needs."""
    tensor.data = other.data


def _tracing_tests() -> list[tuple[object, str]]:
    """Where transformers asks whether it is being traced: in every module that imported the question."""
    return [
        (module, "is_tracing")
        for name, module in list(sys.modules.items())
        if name.startswith("transformers.") and callable(vars(module).get("is_tracing"))
    ]
