"""Every load and store of a block of code, in order: which program, which argument, which elements, how many masked.

For a student who looks at a kernel of their own. Nothing is counted and nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from labkit.meters.traffic.addresses import offsets_in
from labkit.meters.traffic.profile import Program
from labkit.meters.traffic.recorder import NOWHERE, TrafficRecorder
from labkit.meters.traffic.track import track_traffic


@dataclass(frozen=True)
class Access:
    """One load, store or atomic of a block by one program.

    launch: its number, from 0 on. shape and strides: of the tensor that `argument` is. elements: of the lanes that are
    not masked, counted from the tensor's first element; some may lie outside of it. n_masked: the other lanes.

        Access(0, "add_kernel", (1, 0, 0), "load", "x_ptr", (6,), (1,), np.array([4, 5]), n_masked=2)
    """

    launch: int
    kernel: str
    program: Program
    kind: str
    argument: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elements: np.ndarray
    n_masked: int

    @property
    def n_elements(self) -> int:
        """From the tensor's first element to its last, with the gaps between them."""
        return sum((size - 1) * stride for size, stride in zip(self.shape, self.strides)) + 1

    @property
    def n_outside(self) -> int:
        """Lanes that touch what lies outside of the tensor."""
        return int(((self.elements < 0) | (self.elements >= self.n_elements)).sum())


@contextmanager
def track_accesses() -> Iterator[list[Access]]:
    """Record a block: `with track_accesses() as accesses: add(x, y)`.

    Kernels run in Triton's interpreter, so on a CPU only. Lanes out of bounds are recorded and masked off; nothing is
    raised for them. A block whose lanes are all masked has no address to tell its argument by, and is left out.
    """
    accesses: list[Access] = []
    launches: list[object] = []
    stock = TrafficRecorder.access

    def access(self, kind, addresses, mask, item_bytes, values=None):
        if not any(self.launch is one for one in launches):
            launches.append(self.launch)
        lanes, inside = np.broadcast_arrays(addresses, mask)
        active = lanes[inside]
        argument = self.book.at(int(active[0])) if active.size else None
        if argument is not None:
            elements = offsets_in(argument, active) // argument.item_bytes
            n_masked = int(inside.size - active.size)
            tensor = (argument.name, argument.shape, argument.strides)
            accesses.append(
                Access(len(launches) - 1, self.launch.kernel, self.programs[-1], kind, *tensor, elements, n_masked)
            )
        elif active.size:
            one = (NOWHERE, (), (), np.zeros(active.size, np.int64), int(inside.size - active.size))
            accesses.append(Access(len(launches) - 1, self.launch.kernel, self.programs[-1], kind, *one))
        return stock(self, kind, addresses, mask, item_bytes, values)

    TrafficRecorder.access = access
    try:
        with track_traffic():
            yield accesses
    finally:
        TrafficRecorder.access = stock
