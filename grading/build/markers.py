"""The marker lines nbgrader looks for in a cell (`### BEGIN SOLUTION`), and the regions between them.

A marker is found as nbgrader finds it: anywhere in a line. Which cell may have which is judged elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

SOLUTION = "SOLUTION"
MARK_SCHEME = "MARK SCHEME"
HIDDEN_TESTS = "HIDDEN TESTS"


@dataclass(frozen=True)
class Markers:
    """One kind of marker in one cell: the regions as (BEGIN's line, END's line), and what is wrong with them."""

    kind: str
    regions: tuple[tuple[int, int], ...]
    faults: tuple[tuple[int, str], ...]

    def __bool__(self) -> bool:
        return bool(self.regions or self.faults)


def find(lines: list[str], kind: str) -> Markers:
    """The regions of this kind; lines count from 0."""
    begin_mark, end_mark = f"BEGIN {kind}", f"END {kind}"
    regions, faults, begin = [], [], None
    for i, line in enumerate(lines):
        if begin_mark in line and begin is None:
            begin = i
        elif begin_mark in line:
            faults.append((i, f"{begin_mark} inside another {begin_mark}"))
        elif end_mark in line and begin is None:
            faults.append((i, f"{end_mark} without {begin_mark}"))
        elif end_mark in line:
            regions.append((begin, i))
            begin = None
    if begin is not None:
        faults.append((begin, f"{begin_mark} without {end_mark}"))
    return Markers(kind, tuple(regions), tuple(faults))


def inside(lines: list[str], markers: Markers) -> list[list[tuple[int, str]]]:
    """The numbered lines of each region."""
    return [list(enumerate(lines))[begin + 1 : end] for begin, end in markers.regions]


def outside(lines: list[str], markers: Markers) -> list[tuple[int, str]]:
    """The numbered lines that students see."""
    hidden = {i for begin, end in markers.regions for i in range(begin, end + 1)}
    return [(i, line) for i, line in enumerate(lines) if i not in hidden]
