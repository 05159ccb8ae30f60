"""Where the numbers of a log come from: which bytes hold what kernels computed, and what PyTorch may do with them.

PyTorch may fill and copy anything. It may add up, scale and add what kernels stored, constants, and a few single
numbers, and nothing else: what it would compute of the inputs is the kernels' to compute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch.utils._python_dispatch import _disable_current_modes

from labkit.meters.traffic.profile import Launch
from labkit.spec import Tree

DTYPES = {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}
MAX_SINGLES = 16
"""Operations on single numbers that no kernel stored. Without a limit PyTorch computes everything number by number."""


class Origin:
    """Takes a log's entries in their order. sizes: of its storages, in bytes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._computed: dict[int, torch.Tensor] = {}
        """Of each byte whether it is made of kernels' results and constants alone, by storage."""
        self._n_singles = 0

    def add_launch(self, entry: Tree, launch: Launch) -> None:
        """What this launch stored to is computed by kernels. launch: what was measured of it."""
        with _disable_current_modes():
            for name, stored in launch.stored.items():
                base, *indices = re.split(r"[\[\]]+", name.rstrip("]"))
                storage = _storage_of(entry["arguments"][base], [int(index) for index in indices])
                mask = self._mask(storage)
                bytes_stored = torch.from_numpy(stored.mask())[: len(mask)]
                mask[: len(bytes_stored)] |= bytes_stored

    def allows(self, entry: Tree) -> bool:
        """Whether PyTorch may do what an entry says; what it writes counts as computed, or no longer."""
        with _disable_current_modes():
            if entry["do"] == "lost":
                for ref in entry["to"]:
                    self._mask(ref["storage"]).fill_(False)
                return False
            to = self._bytes(entry["to"])
            if entry["do"] in ("copy", "pad"):
                known = self._known(entry["from"])
                if entry["do"] == "pad":
                    to.fill_(True)
                    to = self._bytes(entry["inner"])
                to.copy_(known[..., None])
                return True
            read = read_by(entry)
            foreign = [ref for ref in read if not self._known(ref).all()]
            to.fill_(not foreign or (len(foreign) < len(read) and not any(map(_is_large, foreign))))
            self._n_singles += bool(foreign)
            return not any(map(_is_large, foreign)) and (not foreign or self._n_singles <= MAX_SINGLES)

    def _mask(self, storage: int) -> torch.Tensor:
        if storage < 0:
            raise IndexError("storages are numbered from 0")
        if storage not in self._computed:
            self._computed[storage] = torch.zeros(self._sizes[storage], dtype=torch.bool)
        return self._computed[storage]

    def _bytes(self, ref: Tree) -> torch.Tensor:
        """The mask of a tensor's bytes: its shape, with expanded dimensions once, and one dimension more."""
        item = DTYPES[ref["dtype"]].itemsize
        shape = [size if stride or not size else 1 for size, stride in zip(ref["shape"], ref["strides"])]
        strides = [stride * item for stride in ref["strides"]]
        return self._mask(ref["storage"]).as_strided([*shape, item], [*strides, 1], ref["offset"] * item)

    def _known(self, ref: Tree) -> torch.Tensor:
        return self._bytes(ref).all(-1)


def read_by(entry: Tree) -> list[Tree]:
    """Where the tensors lie that an entry of PyTorch's reads."""
    sides = [entry[side]["tensor"] for side in ("left", "right") if "tensor" in entry.get(side, ())]
    return sides + ([entry["from"]] if "from" in entry else [])


def _is_large(ref: Tree) -> bool:
    """Whether a tensor has more than one element in memory, where an expanded dimension is there once."""
    count = 1
    for size, stride in zip(ref["shape"], ref["strides"]):
        count *= size if stride or not size else 1
    return count > 1


def _storage_of(argument: Tree, indices: Sequence[int]) -> int:
    """The storage behind an argument of a launch, or behind a part of a tuple."""
    for index in indices:
        argument = argument["tuple"][index]
    return argument["tensor"]["storage"] if "tensor" in argument else argument["descriptor"]["base"]["storage"]
