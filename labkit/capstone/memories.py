"""Numbers for the memories that operations work on, in the order in which they first come up.

Runs of a script in which tensors share memory in the same way get the same numbers. What lies in a memory, and how
large it is, is not known here.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch
from torch import Tensor


class Memories:
    """A number for each storage. One that is freed gives its number to nobody."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref, int]] = {}
        self._n_seen = 0

    def of(self, tensors: Iterable[Tensor]) -> tuple[int, ...]:
        """The numbers of their memories."""
        return tuple(self._number(tensor.untyped_storage()) for tensor in tensors)

    def _number(self, storage: torch.UntypedStorage) -> int:
        alive, number = self._known.get(storage._cdata, (None, 0))
        if alive is None or alive() is None:
            number, self._n_seen = self._n_seen, self._n_seen + 1
            self._known[storage._cdata] = weakref.ref(storage), number
        return number
