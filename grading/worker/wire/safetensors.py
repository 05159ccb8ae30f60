"""The body of a frame, which is safetensors data: written from where the tensors lie, read where it lies.

The library would copy every tensor twice on the way out and once on the way in. What a worker sends back is read by the
library all the same, because it checks what it reads; `tensors_in` is for what comes from the supervisor.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping

import torch
from safetensors.torch import load, save

from labkit.tree import bytes_of

Buffer = bytes | bytearray | memoryview | mmap.mmap

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
"""Those that need no copy; the library knows more."""
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LENGTH_BYTES = 8


def buffers_of(tensors: Mapping[str, torch.Tensor]) -> list[Buffer]:
    """Contiguous tensors on the CPU as safetensors data in several parts, which share the tensors' memory."""
    if not tensors:
        return []
    if any(tensor.dtype not in _NAMES for tensor in tensors.values()):
        return [save(dict(tensors))]
    # As the library does: the widest first, so that every one of them is aligned.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize)
    entries, end = {}, 0
    for name, tensor in ordered:
        first, end = end, end + tensor.nbytes
        entries[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [first, end]}
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % _LENGTH_BYTES)
    return [len(header).to_bytes(_LENGTH_BYTES, "little") + header, *(_bytes_of(tensor) for _, tensor in ordered)]


def tensors_in(data: Buffer) -> dict[str, torch.Tensor]:
    """The tensors of safetensors data, as views of it. Raises ValueError or KeyError."""
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    entries = json.loads(bytes(data[_LENGTH_BYTES:start]))
    entries.pop("__metadata__", None)
    if any(entry["dtype"] not in _DTYPES for entry in entries.values()):
        return load(bytes(data))
    return {name: _view(data, start, entry) for name, entry in entries.items()}


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    return memoryview(bytes_of(tensor.detach()).numpy())


def _view(data: Buffer, start: int, entry: dict) -> torch.Tensor:
    dtype = _DTYPES[entry["dtype"]]
    first, last = entry["data_offsets"]
    if first == last:
        return torch.empty(entry["shape"], dtype=dtype)
    n_elements = (last - first) // dtype.itemsize
    return torch.frombuffer(data, dtype=dtype, count=n_elements, offset=start + first).view(entry["shape"])
