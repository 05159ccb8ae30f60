"""Races between the programs of a launch: who touched each element last, and what each program may know of the others.

The interpreter runs programs one after the other, so nothing ever goes wrong here; on a GPU they run in any order. Only
atomics order programs: one that acquires what another released comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NOBODY, MANY = 0, -1


@dataclass(frozen=True)
class Release:
    """One releasing atomic: the program, how many it had done before, and the releases that it had seen by then."""

    program: int
    epoch: int
    acquired: tuple[int, ...]


class Order:
    """Which program comes after which, through atomics; asked only where two programs touch the same element."""

    def __init__(self) -> None:
        self.releases: list[Release] = []
        self.start(0)

    def start(self, program: int) -> None:
        """Another program begins: it has seen nothing yet."""
        self.program, self.epoch = program, 0
        self._acquired: dict[int, None] = {}
        self._known: dict[int, int] | None = {}

    def acquire(self, releases: np.ndarray) -> None:
        """The program read what these releases wrote."""
        for number in np.unique(releases):
            if number != NOBODY and number not in self._acquired:
                self._acquired[int(number)] = None
                self._known = None

    def release(self) -> int:
        """The program wrote something others may acquire; the release's number."""
        self.releases.append(Release(self.program, self.epoch, tuple(self._acquired)))
        self.epoch += 1
        return len(self.releases)

    def knows(self, program: int, epoch: int) -> bool:
        """Whether all that a program did up to an epoch came before what the running one does now."""
        if program == MANY:
            # Too many readers to name: a program that has synchronized at all is trusted.
            return bool(self._acquired)
        if self._known is None:
            self._known = self._reachable()
        return self._known.get(program, -1) >= epoch

    def _reachable(self) -> dict[int, int]:
        known: dict[int, int] = {}
        done: set[int] = set()
        waiting = list(self._acquired)
        while waiting:
            number = waiting.pop()
            if number in done:
                continue
            done.add(number)
            release = self.releases[number - 1]
            known[release.program] = max(known.get(release.program, -1), release.epoch)
            waiting.extend(release.acquired)
        return known


@dataclass
class Touched:
    """For each element of a storage, who loaded, stored or changed it atomically last, and in which epoch.

    Programs count from 1; 0 is nobody. Arrays come into being with the first access of their kind.
    """

    n: int
    last: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    released: np.ndarray | None = None

    def conflicts(self, kind: str, at: slice | np.ndarray, order: Order) -> tuple[str, np.ndarray, np.ndarray] | None:
        """The first kind of access that races with this one: its name, which of the elements, and who did it."""
        against = {"load": ("store", "atomic"), "store": ("store", "load", "atomic"), "atomic": ("store", "load")}
        for earlier in against[kind]:
            if earlier not in self.last:
                continue
            programs, epochs = (array[at] for array in self.last[earlier])
            others = (programs != NOBODY) & (programs != order.program)
            if not others.any():
                continue
            # Both in one number, since a whole block has mostly been touched by one program in one epoch.
            moments = (programs.astype(np.int64) << 32) + epochs
            for moment in np.unique(moments[others]).tolist():
                if order.knows(moment >> 32, moment & 0xFFFFFFFF):
                    others &= moments != moment
            if others.any():
                return earlier, others, programs
        return None

    def touch(self, kind: str, at: slice | np.ndarray, order: Order) -> None:
        if kind not in self.last:
            self.last[kind] = (np.zeros(self.n, np.int32), np.zeros(self.n, np.int32))
        programs, epochs = self.last[kind]
        if kind == "load":
            before = programs[at]
            programs[at] = np.where((before == NOBODY) | (before == order.program), order.program, MANY)
        else:
            programs[at] = order.program
        epochs[at] = order.epoch

    def synchronize(self, at: slice | np.ndarray, order: Order, acquires: bool, releases: bool) -> None:
        """An atomic orders its program after those that released these elements, and others after it."""
        if self.released is None:
            self.released = np.zeros(self.n, np.int32)
        if acquires:
            order.acquire(self.released[at])
        if releases:
            self.released[at] = order.release()
