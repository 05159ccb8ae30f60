"""Who has which place: the best entry of each student on a machine, the fewest virtual hours first.

Entries of equal hours share a place. GPU times and memory are shown and decide nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grading.board.entries import Candidate
from grading.errors import UserError
from labkit.capstone import MACHINES, Entry, ghosts

MOST_CHANGED = 120
"""Characters of what an entry says of itself; a script that is graded has no more."""


@dataclass(frozen=True)
class Place:
    """A row of a board. rank: None of a ghost. shared_by: how many entries have this rank."""

    name: str
    entry: Entry
    rank: int | None = None
    shared_by: int = 1
    candidate: Candidate | None = None

    @property
    def in_words(self) -> str:
        """ "2", "2, shared by 3 entries"; of a ghost "ghost"."""
        if self.rank is None:
            return "ghost"
        return f"{self.rank}, shared by {self.shared_by} entries" if self.shared_by > 1 else str(self.rank)

    @property
    def changed(self) -> str:
        text = str(self.entry.changed)
        return text if len(text) <= MOST_CHANGED else f"{text[:MOST_CHANGED]} …"


@dataclass(frozen=True)
class Board:
    """One machine's board: its places in order, and the ghosts that fit, in between."""

    machine: str
    title: str
    memory_bytes: int | None
    rows: tuple[Place, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(row for row in self.rows if row.rank is not None)


def boards_of(found: Iterable[Candidate], names: Mapping[str, str]) -> list[Board]:
    """A board for each machine of the course, and for every other that somebody has an entry on.

    names: the pseudonym of each student.
    """
    best = _best(found)
    machines = [*MACHINES, *sorted({machine for _, machine in best} - set(MACHINES))]
    return [_board(machine, best, names) for machine in machines]


def board_named(boards: list[Board], machine: str) -> Board:
    """Raises UserError where there is none of this name."""
    for board in boards:
        if board.machine == machine:
            return board
    raise UserError(f'there is no machine "{machine}"', f"there are: {', '.join(board.machine for board in boards)}")


def _best(found: Iterable[Candidate]) -> dict[tuple[str, str], Candidate]:
    """Of each student on each machine; of a student's equal ones the first."""
    best: dict[tuple[str, str], Candidate] = {}
    for candidate in sorted(found, key=lambda each: (each.entry.virtual_hours, each.handed_in, each.attempt)):
        best.setdefault((candidate.student, candidate.entry.machine), candidate)
    return best


def _board(machine: str, best: Mapping[tuple[str, str], Candidate], names: Mapping[str, str]) -> Board:
    theirs = [candidate for (_, name), candidate in best.items() if name == machine]
    hours = [candidate.entry.virtual_hours for candidate in theirs]
    n_of = Counter(hours)
    rows = [
        Place(names[each.student], each.entry, 1 + sum(other < mine for other in hours), n_of[mine], each)
        for each, mine in zip(theirs, hours, strict=True)
    ]
    rows += [Place(level, ghost) for level, ghost in ghosts().get(machine, {}).items() if ghost.counts]
    # Of a ghost's equals the students stand first.
    rows.sort(key=lambda row: (row.entry.virtual_hours, row.rank is None, row.entry.total_peak_bytes, row.name))
    known = MACHINES.get(machine)
    return Board(machine, known.title if known else machine, known.memory_bytes if known else None, tuple(rows))


def same_scripts(boards: Iterable[Board]) -> list[str]:
    """Where several students entered one text: their names, for a person to look at."""
    who: dict[str, set[str]] = defaultdict(set)
    for board in boards:
        for place in board.places:
            who[place.entry.digest].add(place.candidate.student)
    return [
        f"the same script ({digest}) is from {' and '.join(sorted(students))}"
        for digest, students in who.items()
        if len(students) > 1
    ]
