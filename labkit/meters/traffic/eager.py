"""The bytes that PyTorch's operations must move: every distinct input element read once, every output element written.

So an operation that is one kernel on a GPU counts as one; views and empty tensors move nothing; caches and scratch
memory inside an operation are not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_leaves

from labkit.meters.dispatch import Meter
from labkit.meters.memory.storages import strided_in

_NOT_READ = frozenset({"copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_"})
"""In-place operations that overwrite their target without reading it."""

_SHAPED = frozenset(
    {f"{kind}_like" for kind in ("zeros", "ones", "full", "rand", "randn", "randint")}
    | {f"new_{kind}" for kind in ("zeros", "ones", "full")}
)
"""Operations that ask their input for its shape and type alone."""

_PICKS = frozenset({"embedding", "index", "index_select", "gather", "take"})
"""Operations that read of their first input as many elements as they write."""

MAKE_NEW = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
ALLOCATES = MAKE_NEW | {"set_", "resize_"}


@dataclass(frozen=True)
class Operation:
    """One dispatched operation that moved bytes, by PyTorch's own name.

    Operation("add", load_bytes=8192, store_bytes=4096)
    """

    name: str
    load_bytes: int
    store_bytes: int


class EagerTraffic(Meter):
    """Appends the operations of its block to a list."""

    def __init__(self, operations: list[Operation]) -> None:
        super().__init__()
        self._operations = operations

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = self.decomposed(func, args, kwargs)
        if result is not NotImplemented:
            return result
        result = func(*args, **kwargs)
        name = func._overloadpacket.__name__
        if name not in ALLOCATES:
            load_bytes, store_bytes = _moved(func, name, args, kwargs, result)
            if load_bytes or store_bytes:
                self._operations.append(Operation(name, load_bytes, store_bytes))
        return result


def _moved(func, name: str, args: tuple, kwargs: dict, result: object) -> tuple[int, int]:
    written = strided_in(written_by(func, args, kwargs))
    outputs, inputs = strided_in(result), strided_in([args, kwargs])
    storages = {_storage(one) for one in inputs}
    fresh = [one for one in outputs if _storage(one) not in storages]
    if not written and outputs and not fresh:
        return 0, 0
    store_bytes = sum(distinct_bytes(one) for one in (*written, *fresh))
    if name in _PICKS:
        picked = sum(distinct_bytes(one) for one in fresh)
        return picked + sum(distinct_bytes(one) for one in strided_in([args[1:], kwargs])), store_bytes
    if name in _SHAPED:
        return 0, store_bytes
    overwritten = set(map(_place, written)) if name in _NOT_READ or "out" in func._overloadname else set()
    # The same tensor twice, as in x * x, is read once.
    read = {_place(one): one for one in inputs}
    load_bytes = sum(distinct_bytes(one) for place, one in read.items() if place not in overwritten)
    return load_bytes, store_bytes


def written_by(func, args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """The tensors that the operation changes, by its schema."""
    found = []
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            found += [one for one in tree_leaves(value) if isinstance(one, torch.Tensor)]
    return found


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _place(tensor: torch.Tensor) -> tuple:
    return _storage(tensor), tensor.storage_offset(), tensor.stride(), tensor.shape


def distinct_bytes(tensor: torch.Tensor) -> int:
    """Of the distinct elements: an expanded dimension, of stride 0, is in memory once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= size if stride or not size else 1
    return count * tensor.element_size()
