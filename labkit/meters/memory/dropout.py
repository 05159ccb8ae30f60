"""Dropout that keeps a mask of one byte an element on the CPU, too, as it does on a GPU.

PyTorch's own CPU path keeps the mask in the tensor's dtype, up to eight times as much. The values and the random
numbers drawn are the same. In-place dropout is left alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.library import _scoped_library


def _dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    if not train or p == 0:
        return x
    return x * 0 if p == 1 else torch.native_dropout(x, p, train)[0]


@contextmanager
def byte_masks() -> Iterator[None]:
    """Route dropout on the CPU through the operator that GPUs use, for the length of the block."""
    with _scoped_library("aten", "IMPL") as library:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the override, which is meant
            try:
                library.impl("dropout", _dropout, "AutogradCPU")
            except RuntimeError as error:
                # A block around this one has done it already.
                if "already a kernel registered from python" not in str(error):
                    raise
        yield
