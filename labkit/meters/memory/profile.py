"""What a block of code held in memory: the peak, what it consisted of, and every point of the way there.

A profile can be read while the block still runs. Nothing is measured or drawn here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from labkit.meters.memory.record import CATEGORIES, Record
from labkit.meters.memory.sites import Site
from labkit.meters.memory.tracker import Tracker
from labkit.units import in_bytes


@dataclass(frozen=True)
class AliveTensor:
    """A storage that was alive at the peak. shape and dtype are those of the tensor that it was made for.

    AliveTensor(4096, (32, 32), torch.float32, "activations", "relu", Site("/home/ada/lab.py", 7))
    """

    nbytes: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    category: str
    op: str
    site: Site | None

    def __str__(self) -> str:
        shape = " × ".join(map(str, self.shape)) or "scalar"
        made = f", made by {self.op}" if self.site or self.op != "start" else ", there from the start"
        where = f" at {self.site}" if self.site else ""
        return f"{in_bytes(self.nbytes)} {self.category}: {shape} {str(self.dtype).removeprefix('torch.')}{made}{where}"


@dataclass(frozen=True)
class Point:
    """Live bytes just after an operation, by category.

    Point("addmm", live_bytes=6144, by_category={"parameters": 4096, "activations": 2048})
    """

    op: str
    live_bytes: int
    by_category: Mapping[str, int]


@dataclass
class MemoryProfile:
    """All byte counts are of live tensor storages, each counted once. Everything may be read inside the block, too.

    marks: (label, index of the point in `timeline`), in order, as set by `mark`.
    """

    tracker: Tracker
    marks: list[tuple[str, int]] = field(default_factory=list)
    prepare: Callable[[], None] = lambda: None

    @property
    def peak_bytes(self) -> int:
        """The most that was alive at once: parameters, states, inputs and all."""
        return max(self.tracker.curve)

    @property
    def live_bytes(self) -> int:
        """What is alive now; after the block: what was alive at its end."""
        return self.tracker.live_bytes

    @property
    def peak_index(self) -> int:
        """Where in `timeline` the peak is: the first point, if there are several."""
        curve = self.tracker.curve
        return curve.index(max(curve))

    @property
    def peak_by_category(self) -> dict[str, int]:
        """The peak, split; the parts add up to `peak_bytes`."""
        return self.by_category_at(self.peak_index)

    @property
    def at_peak(self) -> tuple[AliveTensor, ...]:
        """What was alive at the peak, the largest first."""
        return self.alive_at(self.peak_index)

    def live_by_category(self) -> dict[str, int]:
        """What is alive now, by category."""
        return self.by_category_at(len(self.tracker.ops))

    def by_category_at(self, index: int) -> dict[str, int]:
        """Live bytes by category at a point of the timeline; only categories that hold something."""
        held: Counter[str] = Counter()
        for record, category in self._sorted():
            held[category] += record.bytes_at(index)
        return {name: held[name] for name in CATEGORIES if held[name]}

    def alive_at(self, index: int) -> tuple[AliveTensor, ...]:
        """The storages alive at a point, the largest first."""
        alive = [
            AliveTensor(record.bytes_at(index), record.shape, record.dtype, category, record.op, record.site)
            for record, category in self._sorted()
            if record.bytes_at(index)
        ]
        return tuple(sorted(alive, key=lambda tensor: -tensor.nbytes))

    @property
    def timeline(self) -> Sequence[Point]:
        """A point for the start and one after each operation."""
        ops = self.tracker.ops
        changes: list[Counter[str]] = [Counter() for _ in range(len(ops) + 1)]
        for record, category in self._sorted():
            for when, n_bytes in _changes(record):
                changes[min(when, len(ops))][category] += n_bytes
        held = dict.fromkeys(CATEGORIES, 0)
        points = []
        for op, change, live_bytes in zip(ops, changes[: len(ops)], self.tracker.curve, strict=True):
            held = {name: held[name] + change[name] for name in CATEGORIES}
            points.append(Point(op, live_bytes, held))
        return points

    def mark(self, label: str) -> None:
        """Give the present moment a name, to be shown on the timeline."""
        self.marks.append((label, len(self.tracker.ops) - 1))

    def report(self, n_tensors: int = 8) -> str:
        """The peak in words: its parts, and the largest tensors with the lines that made them."""
        lines = [f"peak {in_bytes(self.peak_bytes)}"]
        lines += [f"  {name:12} {in_bytes(n_bytes)}" for name, n_bytes in self.peak_by_category.items()]
        lines += ["the largest tensors at the peak:", *(f"  {tensor}" for tensor in self.at_peak[:n_tensors])]
        return "\n".join(lines)

    def _sorted(self) -> list[tuple[Record, str]]:
        """Every record with the category that it has by what is known so far."""
        self.prepare()
        alive = {id(record) for record in self.tracker.live_records()}
        return [
            (record, "activations" if id(record) in alive and record.recorded and not record.label else record.category)
            for record in self.tracker.records
        ]


def _changes(record: Record) -> list[tuple[int, int]]:
    """(point, bytes more) over a record's life."""
    first = record.n_bytes - sum(more for _, more in record.changes)
    life = [(record.born, first), *record.changes]
    if record.freed is not None:
        life.append((record.freed, -record.n_bytes))
    return life
