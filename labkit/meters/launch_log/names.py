"""How a log names memory and arguments: storages by number, tensors by storage and layout, nothing by its content.

`LoggedStorages` numbers what is met; `encoded` makes a launch's argument plain data. Nothing is launched or read.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from labkit.meters.launch_log.source import digest_of_function
from labkit.meters.launches import Pointer
from labkit.spec import Tree


class LoggedStorages:
    """The storages that a log has met, the leaves of the inputs first; by weak references, so it holds no memory."""

    def __init__(self, inputs: Mapping[str, torch.Tensor]) -> None:
        self.described: list[dict[str, Tree]] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[StorageWeakRef] = []
        """While it is referred to, the address of a storage that is gone is not given to another."""
        for path, tensor in inputs.items():
            if tensor.untyped_storage()._cdata not in self._numbers:
                self._add(tensor, {"input": path})

    def knows(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._numbers

    def ref(self, tensor: torch.Tensor) -> dict[str, Tree]:
        """Where a tensor lies: storage number, offset in elements, shape, strides, dtype."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._numbers:
            # Made by no entry: whoever repeats the log fills it with what is no number.
            self._add(tensor, {"bytes": storage.nbytes()})
        described = self.described[self._numbers[storage._cdata]]
        if "bytes" in described:
            # PyTorch lets the memory of a result given as `out` grow.
            described["bytes"] = max(described["bytes"], storage.nbytes())
        return {
            "storage": self._numbers[storage._cdata],
            "offset": tensor.storage_offset(),
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
            "dtype": str(tensor.dtype).removeprefix("torch."),
        }

    def _add(self, tensor: torch.Tensor, described: dict[str, Tree]) -> None:
        storage = tensor.untyped_storage()
        self._numbers[storage._cdata] = len(self.described)
        self._kept.append(StorageWeakRef(storage))
        self.described.append(described)


def encoded(value: object, storages: LoggedStorages) -> dict[str, Tree]:
    """A launch's argument as {kind: plain data}; {"unknown": type} for what cannot be handed to another process."""
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor

    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, torch.Tensor):
        return {"tensor": storages.ref(value)}
    if isinstance(value, Pointer):
        return {"pointer": [str(value.dtype).removeprefix("torch."), value.offset_bytes, value.n_bytes]}
    if value is None or type(value) in (bool, int, float, str):
        return {"plain": value}
    if isinstance(value, numbers.Integral | numbers.Real):
        return {"plain": value.item() if hasattr(value, "item") else float(value)}
    if isinstance(value, tl.dtype):
        return {"dtype": value.name}
    if isinstance(value, list | tuple):
        return {"tuple": [encoded(item, storages) for item in value]}
    if isinstance(value, TensorDescriptor):
        layout = {"shape": value.shape, "strides": value.strides, "block_shape": value.block_shape}
        base = encoded(value.base, storages) if isinstance(value.base, Pointer) else storages.ref(value.base)
        return {"descriptor": {"base": base, "padding": value.padding, **layout}}
    if hasattr(value, "fn") and callable(value.fn):
        return {"kernel": [value.fn.__name__, digest_of_function(value.fn)]}
    return {"unknown": type(value).__name__}
