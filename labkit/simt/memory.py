"""Global and constant memory: tensors at virtual addresses, far from one another, and access by address.

A virtual address is a number that means nothing to this process: every access is looked up in the list of regions,
so that one out of bounds becomes a fault and never touches what lies beside the tensor. Shared and local memory are
in `shared`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

FIRST_ADDRESS = 1 << 33
GAP = 1 << 24
SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 1 << 57
WINDOW_BYTES = 1 << 32
"""Where shared and local memory lie among generic addresses, above all tensors."""


@dataclass
class Region:
    """One allocation. base: virtual address of data[0]; low, high: the addresses that may be accessed, high excluded.

    element: bytes of an element, n_elements, start: address of element 0, all for messages.
    """

    name: str
    base: int
    data: np.ndarray
    low: int
    high: int
    start: int
    element: int
    n_elements: int
    writable: bool = True
    views: dict[np.dtype, np.ndarray] = field(default_factory=dict)
    writer: np.ndarray | None = None
    reader: np.ndarray | None = None

    def view(self, dtype: np.dtype) -> np.ndarray:
        """The data as elements of this type; what is left over at the end is dropped."""
        if dtype not in self.views:
            whole = self.data.size // dtype.itemsize * dtype.itemsize
            self.views[dtype] = self.data[:whole].view(dtype)
        return self.views[dtype]

    def describe(self, address: int) -> str:
        """`x[12]` and how large x is: "x[1000], but x has 1,000 elements"."""
        index = (address - self.start) // self.element
        if self.low <= address < self.high:
            return f"{self.name}[{index}]"
        return f"{self.name}[{index}], but {self.name} has {self.n_elements:,} elements"


@dataclass(frozen=True)
class Part:
    """What of an access falls into one region. chosen: its elements, None where it is all of them."""

    region: Region
    chosen: np.ndarray | None


class Memory:
    """The regions that a launch may access."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._next = FIRST_ADDRESS
        self._storages: dict[int, Region] = {}
        self.recent: dict[object, Region] = {}

    def add_bytes(self, name: str, data: np.ndarray, element: int = 1, writable: bool = True) -> Region:
        """A variable of the module. data: uint8, used in place."""
        base = self._place(data.size)
        region = Region(name, base, data, base, base + data.size, base, element, data.size // element, writable)
        self.regions.append(region)
        return region

    def add_tensor(self, name: str, tensor: torch.Tensor) -> int:
        """The virtual address of a CPU tensor's first element. Tensors that share storage lie as they do there."""
        storage = tensor.untyped_storage()
        item = tensor.element_size()
        offset = tensor.storage_offset() * item
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        length = (last + 1) * item if tensor.numel() else 0
        region = self._storages.get(storage.data_ptr()) if storage.nbytes() else None
        if region is None:
            whole = torch.empty(0, dtype=torch.uint8).set_(storage)  # type: ignore[call-overload]
            data = whole.numpy()
            base = self._place(data.size)
            region = Region(name, base, data, base + offset, base + offset, base + offset, item, tensor.numel())
            self.regions.append(region)
            if storage.nbytes():
                self._storages[storage.data_ptr()] = region
        region.low = min(region.low, region.base + offset)
        region.high = max(region.high, region.base + offset + length)
        return region.base + offset

    def copy(self) -> Memory:
        """Another memory with the same regions, to which more can be added; races start anew."""
        other = Memory()
        other.regions = [replace(region, writer=None, reader=None) for region in self.regions]
        other._next = self._next
        return other

    def _place(self, size: int) -> int:
        base = self._next
        self._next = (base + size + 2 * GAP) & -256
        return base

    def split(self, addresses: np.ndarray, size: int, who: object) -> tuple[Sequence[Part], np.ndarray | None]:
        """Which regions these accesses of `size` bytes fall into, and which fall into none (None: all do).

        who: the instruction; the region that it last accessed is tried first.
        """
        low, high = int(addresses.min()), int(addresses.max()) + size
        for region in (self.recent.get(who), *self.regions):
            if region is not None and region.low <= low and high <= region.high:
                self.recent[who] = region
                return (Part(region, None),), None
        parts, lost = [], np.ones(addresses.shape, bool)
        for region in self.regions:
            chosen = (addresses >= region.low) & (addresses <= region.high - size)
            if chosen.any():
                parts.append(Part(region, chosen))
                lost &= ~chosen
        return parts, lost if lost.any() else None

    def nearest(self, address: int) -> Region | None:
        """The region that an address out of bounds probably means: the nearest within half a gap."""

        def distance(region: Region) -> int:
            return max(region.low - address, address - region.high + 1, 0)

        near = min(self.regions, key=distance, default=None)
        return near if near is not None and distance(near) < max(GAP, near.data.size) else None
