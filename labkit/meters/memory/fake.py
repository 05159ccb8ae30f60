"""Fake tensors that whole training programs can run on: the known obstacles, each removed in one place.

A fake tensor has a shape, a dtype and a device and no memory. What programs ask of its values is answered in `answers`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch

from labkit.meters.memory.answers import Answers


@contextmanager
def fake_tensors() -> Iterator[Answers]:
    """In the block, every tensor that is made is fake, on the CPU (fake CUDA tensors need a CUDA build of PyTorch)."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with ExitStack() as stack:
        # Before the mode: what is imported in it would make fake tensors of its constants.
        stack.enter_context(_not_traced())
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        answers = stack.enter_context(Answers())
        # Module.to() swaps the tensors, which fails for fake ones, because their mode holds references to them.
        stack.enter_context(mock.patch.object(torch.utils, "swap_tensors", _overwrite))
        # It draws until every value is inside of its bounds, which of fake values cannot be told.
        stack.enter_context(mock.patch.object(torch.nn.init, "_no_grad_trunc_normal_", _normal))
        yield answers


def _overwrite(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Give a parameter the data of another one, which is all that a conversion needs."""
    tensor.data = other.data


def _normal(tensor: torch.Tensor, *bounds: object, **settings: object) -> torch.Tensor:
    with torch.no_grad():
        return tensor.normal_()


@contextmanager
def _not_traced() -> Iterator[None]:
    """Have transformers, where it is installed, not take fake tensors for a compiler at work.

    It would then build what a real run skips, such as explicit attention masks.
    """
    if importlib.util.find_spec("transformers") is None:
        yield
        return
    asked = importlib.import_module("transformers.utils.import_utils")
    is_tracing = asked.is_tracing

    def is_not_tracing(tensor: object = None) -> bool:
        return False

    def replace(old: object, new: object) -> None:
        # In every module that has imported the question by now.
        for name, module in list(sys.modules.items()):
            if name.startswith("transformers.") and vars(module).get("is_tracing") is old:
                module.is_tracing = new

    replace(is_tracing, is_not_tracing)
    try:
        yield
    finally:
        replace(is_not_tracing, is_tracing)
