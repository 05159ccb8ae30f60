"""Named moments at which all ranks halt: who has come to which, and what each of them holds there.

A moment takes no time on the virtual clock and nothing is sent. What is held is told by the ranks, and not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.ranks.errors import CommError

MAX_LABEL = 60
"""The most characters of a moment's name."""


def is_label(label: object) -> bool:
    """Whether a moment may be called so."""
    return isinstance(label, str) and 0 < len(label) <= MAX_LABEL and label.isprintable()


@dataclass
class Mark:
    """A moment to which ranks have come: what each of them holds. by: the first of them."""

    label: str
    by: int
    held_bytes: dict[int, int | None] = field(default_factory=dict)


class Marks:
    """The moments of a run. The n-th of every rank has to be the same one."""

    def __init__(self, world_size: int) -> None:
        self._marks: list[Mark] = []
        self._n_marks = [0] * world_size

    def come(self, rank: int, label: str, held_bytes: int | None) -> Mark:
        """A rank has come to its next moment. Raises CommError where another rank is at another one."""
        number = self._n_marks[rank]
        self._n_marks[rank] += 1
        if number == len(self._marks):
            self._marks.append(Mark(label, rank))
        mark = self._marks[number]
        if label != mark.label:
            raise CommError(f"mark number {number + 1}: rank {mark.by} is at {mark.label!r}, rank {rank} at {label!r}")
        mark.held_bytes[rank] = held_bytes
        return mark
