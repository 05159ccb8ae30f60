"""What Python's collector has to look through while scripts are billed: what they have made, and nothing older."""

from __future__ import annotations

import gc
import sys

import pytest

from labkit.capstone.bill import set_aside


class Collector:
    """In place of `gc`, for an imagined process: notes how many objects each collection looks through."""

    def __init__(self, n_objects: int, n_frozen: int = 0) -> None:
        self.n_objects, self.n_frozen = n_objects, n_frozen
        self.looked_through: list[int] = []

    def get_freeze_count(self) -> int:
        return self.n_frozen

    def collect(self) -> None:
        self.looked_through.append(self.n_objects)

    def freeze(self) -> None:
        self.n_objects, self.n_frozen = 0, self.n_frozen + self.n_objects

    def unfreeze(self) -> None:
        self.n_objects, self.n_frozen = self.n_frozen, 0


def test_what_is_old_is_looked_through_once_for_all_bills_and_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector(1000)
    monkeypatch.setattr(sys.modules["labkit.capstone.bill"], "gc", collector)
    with set_aside():
        for _ in range(3):
            with set_aside():
                collector.collect()
    assert collector.looked_through == [1000] + [0] * 6
    assert (collector.n_objects, collector.n_frozen) == (1000, 0)


def test_a_process_that_has_set_things_aside_keeps_them_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the tests' own do, and have much more by the time that a script is billed."""
    collector = Collector(1000, n_frozen=50)
    monkeypatch.setattr(sys.modules["labkit.capstone.bill"], "gc", collector)
    for _ in range(3):
        with set_aside():
            collector.collect()
    assert collector.looked_through == [1000] + [0] * 5
    assert collector.n_frozen == 1050


def test_pythons_own_collector_passes_over_what_was_there() -> None:
    old = [[number] for number in range(100)]
    with set_aside():
        new = [[number] for number in range(100)]
        seen = set(map(id, gc.get_objects()))
    assert not seen & set(map(id, old)) and seen >= set(map(id, new))
