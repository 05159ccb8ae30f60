"""One tensor as a plain tree: its bytes, its shape and the name of its dtype, whatever dtype that is.

Both ends of a rank's channel use it. What comes in is checked before it is looked at as a tensor.
"""

from __future__ import annotations

import math

import torch

from grading.worker.wire.typed import WireError
from labkit.spec import Tree
from labkit.tree import bytes_of

MAX_DIMS = 16
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.bool, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
        *(torch.float8_e4m3fn, torch.float8_e5m2),
    )
}
"""What may cross; no quantized ones, which are more than their bytes."""


def pack(tensor: torch.Tensor) -> Tree:
    """A tensor on any device. Raises TypeError for a dtype that cannot be sent."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return {**form_of(plain), "bytes": bytes_of(plain)}


def form_of(tensor: torch.Tensor) -> Tree:
    """Its shape and dtype alone. Raises TypeError for a dtype that cannot be sent."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise TypeError(f"ranks cannot send one another tensors of dtype {name}")
    return {"shape": list(tensor.shape), "dtype": name}


def unpack(tree: Tree) -> torch.Tensor:
    """The tensor, in memory of its own. Raises WireError where bytes, shape and dtype do not go together."""
    shape, dtype = _checked_form(tree)
    data = tree.get("bytes")
    if type(data) is not torch.Tensor or data.dtype != torch.uint8 or data.dim() != 1:
        raise WireError("a tensor without its bytes")
    if data.numel() != math.prod(shape) * dtype.itemsize:
        raise WireError(f"{data.numel():,} bytes for a tensor of {math.prod(shape):,} elements of {dtype}")
    # Where they lie in a frame, they need not lie as the dtype wants it.
    return data.clone().view(dtype).reshape(shape)


def blank(tree: Tree) -> torch.Tensor:
    """A tensor of this form that holds nothing. Raises WireError."""
    shape, dtype = _checked_form(tree)
    try:
        return torch.empty(shape, dtype=dtype, device="meta")
    except (RuntimeError, TypeError) as error:
        raise WireError("a shape that no tensor has") from error


def _checked_form(tree: Tree) -> tuple[list[int], torch.dtype]:
    if not isinstance(tree, dict):
        raise WireError("no tensor where one was due")
    shape, name = tree.get("shape"), tree.get("dtype")
    if not isinstance(shape, list) or len(shape) > MAX_DIMS or any(type(n) is not int or n < 0 for n in shape):
        raise WireError("a tensor without a shape")
    if not isinstance(name, str) or name not in _DTYPES:
        raise WireError("a tensor of a dtype that nobody knows")
    return shape, _DTYPES[name]
