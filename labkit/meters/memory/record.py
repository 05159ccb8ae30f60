"""What is written down while storages come and go: one record for each, and a point in time for each operation.

Which category a storage belongs to is often known only later (a tensor is a gradient once it hangs on its parameter),
so records keep what they are told and are sorted into categories when somebody asks.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import torch

from labkit.meters.memory.sites import Site

CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "inputs", "temporaries")
"""In the order in which they are stacked. Parameters include buffers."""


class Phase(enum.Enum):
    """What the program is doing when an operation is dispatched."""

    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "optimizer step"


@dataclass(slots=True)
class Record:
    """One storage. Points are indices into the timeline: alive at every point from `born` up to, without, `freed`.

    changes: (point, bytes more) for every in-place resize. label: the category that something outside said it has.
    recorded: it was made in a forward pass, also inside the forward of an autograd function, where nothing is recorded.
    kept: it was, and it outlived the phase that it was made in.
    """

    n_bytes: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    born: int
    op: str
    made: bool
    phase_number: int
    recorded: bool
    site: Site | None = None
    freed: int | None = None
    kept: bool = False
    label: str | None = None
    changes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def category(self) -> str:
        """The label if there is one; else activations for what the forward pass kept, temporaries for the rest."""
        if self.label:
            return self.label
        if not self.made:
            return "inputs"
        return "activations" if self.kept else "temporaries"

    def bytes_at(self, point: int) -> int:
        """What it took at a point of the timeline."""
        if point < self.born or (self.freed is not None and point >= self.freed):
            return 0
        # n_bytes is the newest size: take back what came later.
        return self.n_bytes - sum(more for when, more in self.changes if when > point)
