"""Which memory lies where: the storages that the simulated device knows, each by a number of its own.

A storage is known from the operation that makes it until nothing refers to it any more, which is reported.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_leaves

from labkit.simdevice.commands import Place


@dataclass(frozen=True)
class KnownStorage:
    """One known storage."""

    number: int
    place: Place
    nbytes: int


class Storages:
    """on_free is called with the number of a block whose last reference is gone."""

    def __init__(self, on_free: Callable[[int], None]) -> None:
        self._on_free = on_free
        self._blocks: dict[int, tuple[KnownStorage, weakref.ref]] = {}
        self._n_made = 0

    def add(self, tensor: torch.Tensor, place: Place) -> KnownStorage:
        """Know the storage of `tensor` from now on."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        self._n_made += 1
        block = KnownStorage(self._n_made, place, storage.nbytes())
        self._blocks[key] = block, weakref.ref(storage, lambda _, key=key: self._forget(key))
        return block

    def drop(self, tensor: torch.Tensor) -> None:
        """Know a storage no more, without a report."""
        self._blocks.pop(tensor.untyped_storage()._cdata, None)

    def of(self, tensor: torch.Tensor) -> KnownStorage | None:
        """The block that a tensor lies in; None for memory that was there before and lies on the host."""
        if tensor.layout is not torch.strided:
            return None
        found = self._blocks.get(tensor.untyped_storage()._cdata)
        return found and found[0]

    def on_device(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's memory is the device's."""
        block = self.of(tensor)
        return block is not None and block.place == "device"

    def numbers(self, tensors: Iterable[torch.Tensor]) -> tuple[int, ...]:
        """The numbers of the known blocks among these tensors' memory, each once."""
        return tuple(dict.fromkeys(block.number for tensor in tensors if (block := self.of(tensor))))

    def _forget(self, key: int) -> None:
        block, _ = self._blocks.pop(key)
        self._on_free(block.number)


def tensors_in(*trees: object) -> list[torch.Tensor]:
    """The tensors among arguments or results."""
    return [leaf for leaf in tree_leaves(trees) if isinstance(leaf, torch.Tensor)]
