"""Tensors in shared memory: written and sealed by the supervisor, mapped by the worker without a copy.

A worker whose memory is watched gets its inputs so: they add their own size to it and nothing else. What it writes
to them is its own, the memory behind them cannot change. Linux only.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_F_ADD_SEALS = 1033
_SEAL_ALL = 0xF
_LENGTH_BYTES = 8


@contextmanager
def sealed_memory(data: bytes) -> Iterator[int]:
    """A descriptor of memory that holds `data` and can never be written, grown or shrunk; closed at the end."""
    descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEAL_ALL)
        yield descriptor
    finally:
        os.close(descriptor)


def map_tensors(descriptor: int) -> dict[str, torch.Tensor]:
    """The tensors of safetensors data in a file, as views of its private mapping. Raises ValueError or KeyError."""
    mapped = mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    start = _LENGTH_BYTES + int.from_bytes(mapped[:_LENGTH_BYTES], "little")
    header = json.loads(mapped[_LENGTH_BYTES:start])
    return {name: _view(mapped, start, entry) for name, entry in header.items() if name != "__metadata__"}


def _view(mapped: mmap.mmap, start: int, entry: dict) -> torch.Tensor:
    dtype = _DTYPES[entry["dtype"]]
    first, last = entry["data_offsets"]
    if first == last:
        return torch.empty(entry["shape"], dtype=dtype)
    n_elements = (last - first) // dtype.itemsize
    return torch.frombuffer(mapped, dtype=dtype, count=n_elements, offset=start + first).view(entry["shape"])
