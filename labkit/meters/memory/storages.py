"""The storages behind a tensor: what is counted, each once, however many views of it there are.

Sparse tensors and tensor subclasses that wrap others are taken apart into the strided tensors they hold. Nothing is
counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

_COMPRESSED = {
    torch.sparse_csr: (torch.Tensor.crow_indices, torch.Tensor.col_indices),
    torch.sparse_bsr: (torch.Tensor.crow_indices, torch.Tensor.col_indices),
    torch.sparse_csc: (torch.Tensor.ccol_indices, torch.Tensor.row_indices),
    torch.sparse_bsc: (torch.Tensor.ccol_indices, torch.Tensor.row_indices),
}
_NESTED = (list, tuple)
"""Made once: this is asked of every argument of every operation that is metered."""


def tensors_in(value: object, found: list[torch.Tensor]) -> list[torch.Tensor]:
    """Append to `found` every tensor in nested lists, tuples and mappings. Faster than a general tree of nodes."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, _NESTED):
        for item in value:
            tensors_in(item, found)
    elif isinstance(value, dict) or (hasattr(value, "items") and isinstance(value, Mapping)):
        # Asked last: every class that is asked about is remembered, in memory that a meter of Python's memory sees.
        for item in value.values():
            tensors_in(item, found)
    return found


def strided_parts(tensor: torch.Tensor) -> Iterable[torch.Tensor]:
    """The tensors that hold the bytes of this one: itself in the usual case."""
    if hasattr(type(tensor), "__tensor_flatten__"):
        return strided_inside(tensor)
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return ()
    if tensor.layout is torch.strided:
        return (tensor.values(),) if tensor.is_nested else (tensor,)
    if tensor.layout is torch.sparse_coo:
        return (tensor._indices(), tensor._values())
    if tensor.layout in _COMPRESSED:
        return (*(part(tensor) for part in _COMPRESSED[tensor.layout]), tensor.values())
    # oneDNN's blocked layout has no storage that Python could see.
    return ()


def strided_in(value: object) -> list[torch.Tensor]:
    """The strided parts of every tensor in nested lists, tuples and mappings."""
    return [part for tensor in tensors_in(value, []) for part in strided_parts(tensor)]


def strided_inside(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The plain tensors inside a wrapper, such as a shard of a distributed one."""
    names, _ = tensor.__tensor_flatten__()
    # Among the names of a distributed tensor is its mesh.
    inside = [part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor)]
    return [strided for part in inside for strided in strided_parts(part)]
