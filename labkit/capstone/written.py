"""Which parts of a tensor's memory a step has written: to find a weight that it left as it was, or a part of one.

Bytes are told apart, and not only counted: the same rows written twice are not twice as many, and what is written to
one weight is nothing to another that lies in the same memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

MOST_PIECES = 2**16
"""A view of more pieces, none of which continues another, counts as not written."""


class Written:
    """Bytes written to the memories that are watched."""

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        self._pieces: dict[int, list[tuple[int, int]]] = {storage_of(one): [] for one in tensors}

    def add(self, tensor: Tensor) -> None:
        """All of the tensor, a view of it perhaps, has been written."""
        pieces = self._pieces.get(storage_of(tensor))
        if pieces is not None:
            pieces.extend(pieces_of(tensor))

    def begin(self, tensor: Tensor) -> None:
        """Watch this memory from now on, as one that is new."""
        self._pieces[storage_of(tensor)] = []

    def covers(self, tensor: Tensor) -> bool:
        """Whether every byte of the tensor has been written."""
        written = sorted(self._pieces.get(storage_of(tensor), ()))
        for start, stop in pieces_of(tensor):
            for begin, end in written:
                if begin > start:
                    break
                start = max(start, end)
            if start < stop:
                return False
        return True


def storage_of(tensor: Tensor) -> int:
    """What tells a tensor's memory from that of others while it lives."""
    return tensor.untyped_storage()._cdata


def pieces_of(tensor: Tensor) -> list[tuple[int, int]]:
    """The bytes [start, stop) of its memory that a tensor shows, each once; none where they are too many pieces."""
    if not tensor.numel():
        return []
    steps = sorted((step, n) for n, step in zip(tensor.shape, tensor.stride(), strict=True) if n > 1 and step)
    length, starts = 1, [0]
    for step, n in steps:
        if step == length and len(starts) == 1:
            length *= n
        elif len(starts) * n > MOST_PIECES:
            return []
        else:
            starts = [start + k * step for start in starts for k in range(n)]
    size, first = tensor.element_size(), tensor.storage_offset()
    return [((first + start) * size, (first + start + length) * size) for start in sorted(starts)]
