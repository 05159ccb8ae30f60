"""Which line of the student's source an instruction belongs to, from the .loc and .file directives of the PTX.

Code of a header that the compiler has inlined belongs to the line that calls it; code of a function of the student's
own file to the line in that function, inlined or not, as in a profiler's source view.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"(.*)"', re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?.*$", re.MULTILINE)

Place = tuple[int, int, int]
"""File, line, column."""


@dataclass
class LineTable:
    """The places of a PTX text. own: the number of the student's file, None where no .file names it."""

    own: int | None
    callers: Mapping[Place, Place] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The student's line of this place; 0 where there is none."""
        seen = set()
        while place[0] != self.own and place in self.callers and place not in seen:
            seen.add(place)
            place = self.callers[place]
        return place[1] if place[0] == self.own else 0


def read_lines(ptx: str, name: str) -> tuple[str, LineTable]:
    """The PTX with every .loc reduced to ".loc LINE ;", and the table. name: the student's file."""
    files = {int(number): path.replace("\\\\", "/").rsplit("/", 1)[-1] for number, path in _FILE.findall(ptx)}
    own = next((number for number, path in files.items() if path == name), None)
    callers = {}
    for found in _LOC.finditer(ptx):
        if found[4]:
            callers[_place(found, 1)] = _place(found, 4)
    table = LineTable(own, callers)
    return _LOC.sub(lambda found: f".loc {table.line(_place(found, 1))} ;", ptx), table


def _place(found: re.Match[str], first: int) -> Place:
    return int(found[first]), int(found[first + 1]), int(found[first + 2])
