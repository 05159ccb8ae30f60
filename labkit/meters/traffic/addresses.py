"""Addresses that a metered kernel sees: each argument lies alone in a region of its own, 16 TiB from the next.

So a lane that runs off an argument is told by its address, and never lands in a neighbour, whatever the heap looks
like. The real address is put in when memory is touched. Nothing is copied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

_SHIFT = 44
_MARK = 1 << 62
_MIDDLE = 1 << (_SHIFT - 1)
_ALL = (1 << 64) - 1


@dataclass(frozen=True)
class Argument:
    """A tensor argument. offset_bytes: of its first element in its storage; extent_bytes: to the end of its last.

    shape and strides: of the tensor, in elements. held: which elements of that extent are its own; None where all are.
    """

    name: str
    number: int
    real: int
    offset_bytes: int
    extent_bytes: int
    item_bytes: int
    storage: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    held: np.ndarray | None = None

    @property
    def address(self) -> int:
        """What the kernel is told. Aligned as on a GPU, whose allocations start at multiples of 256 bytes."""
        return _MARK + (self.number << _SHIFT) + _MIDDLE + self.offset_bytes

    @property
    def n_elements(self) -> int:
        return self.extent_bytes // self.item_bytes


class AddressBook:
    """The arguments of one launch, by the tensors that were given."""

    def __init__(self) -> None:
        self.arguments: list[Argument] = []
        self._by_tensor: dict[int, Argument] = {}

    def add(self, name: str, tensor: torch.Tensor) -> Argument:
        item_bytes = tensor.element_size()
        span = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1
        argument = Argument(
            name=name,
            number=len(self.arguments) + 1,
            real=tensor.data_ptr(),
            offset_bytes=tensor.storage_offset() * item_bytes,
            extent_bytes=span * item_bytes if tensor.numel() else 0,
            item_bytes=item_bytes,
            storage=tensor.untyped_storage().data_ptr(),
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            held=_held(tensor, span),
        )
        self.arguments.append(argument)
        self._by_tensor[id(tensor)] = argument
        return argument

    def of(self, tensor: object) -> Argument | None:
        """The argument made of this very tensor object."""
        return self._by_tensor.get(id(tensor))

    def at(self, address: int) -> Argument | None:
        """The argument whose region an address lies in; a real address, taken from memory, is looked up as well."""
        number = (address - _MARK) >> _SHIFT
        if 1 <= number <= len(self.arguments):
            return self.arguments[number - 1]
        inside = (one for one in self.arguments if one.real <= address < one.real + one.extent_bytes)
        return next(inside, None)

    def numbers(self, addresses: np.ndarray) -> np.ndarray:
        """The region of each address; addresses of no region have numbers of no argument."""
        return addresses >> np.uint64(_SHIFT)


def _held(tensor: torch.Tensor, span: int) -> np.ndarray | None:
    if not tensor.numel() or span <= math.prod(size for size, stride in zip(tensor.shape, tensor.stride()) if stride):
        return None
    held = np.zeros(span, dtype=bool)
    np.lib.stride_tricks.as_strided(held, tensor.shape, tensor.stride())[...] = True
    return held


def shift_to_real(argument: Argument, address: int) -> np.uint64:
    """What to add, modulo 2^64, to an address of this argument to get the real one; 0 for one that is real."""
    is_real = argument.real <= address < argument.real + argument.extent_bytes
    return np.uint64(0 if is_real else (argument.real - argument.address) & _ALL)


def offsets_in(argument: Argument, addresses: np.ndarray) -> np.ndarray:
    """Bytes from the argument's first element to each address, signed."""
    real = argument.real <= int(addresses.flat[0]) < argument.real + argument.extent_bytes
    start = argument.real if real else argument.address
    return (addresses - np.uint64(start)).view(np.int64)
