"""Tensors in shared memory: written and sealed by the supervisor, mapped by the worker without a copy.

A worker whose memory is measured gets its inputs so: they add their own size to it and nothing else. What it writes
to them is its own, the memory behind them cannot change. Linux only.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from grading.worker.wire.safetensors import Buffer, tensors_in

_F_ADD_SEALS = 1033
_SEAL_ALL = 0xF


@contextmanager
def sealed_memory(data: Sequence[Buffer]) -> Iterator[int]:
    """A descriptor of memory that holds these buffers, one after the other, and can never be written, grown or shrunk;
    closed at the end.
    """
    descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            for part in data:
                file.write(part)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEAL_ALL)
        yield descriptor
    finally:
        os.close(descriptor)


def map_tensors(descriptor: int) -> dict[str, torch.Tensor]:
    """The tensors of safetensors data in a file, as views of its private mapping. Raises ValueError or KeyError."""
    return tensors_in(mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
