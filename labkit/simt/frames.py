"""One call of a function while it runs: its registers, its arguments and results, and where its lanes go back to.

Calls and returns themselves are in `calls`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labkit.simt.lanes import Mask
from labkit.simt.plan import Plan
from labkit.simt.types import dtype_of
from labkit.simt.values import resize


@dataclass
class Frame:
    """One call of a function: its registers and where its lanes go back to. active: lanes that have not returned."""

    number: int
    plan: Plan
    depth: int
    caller: Frame | None
    back: int
    local_base: int
    active: Mask | None
    regs: list[np.ndarray] = field(default_factory=list)
    cells: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    children: dict[int, Frame] = field(default_factory=dict)
    results: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.regs = [np.zeros((1, 1), dtype_of(one.type)) for one in self.plan.function.registers]

    def set_cell(self, name: str, offset: int, value: np.ndarray, mask: Mask) -> None:
        """Store a piece of a call's argument or result for these lanes."""
        old = self.cells.get((name, offset))
        if old is not None and not mask.is_all:
            value = np.where(mask.array, value, resize(old, value.dtype))
        self.cells[name, offset] = value

    def copy_cells(self, other: Frame, source: str, target: str, mask: Mask) -> None:
        """Copy all pieces of an argument or result from another frame."""
        for (name, offset), value in list(other.cells.items()):
            if name == source:
                self.set_cell(target, offset, value, mask)
