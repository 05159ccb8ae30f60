"""A known answer written as what it changes in another: lines begun with `-` go, with `+` come, with a space stay.

    -        self.scale *= self.backoff
    +        self.scale /= self.backoff

     def step(self, optimizer):
    -        if self.bad is None:
    -            self.unscale_(optimizer)

Blank lines divide it into hunks. The lines of a hunk that go or stay must stand one after the other in the base, and in
one place only; the order of the hunks is free. There are no line numbers, so that a base can be edited elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


class PatchError(ValueError):
    """A patch that cannot be read, or that does not fit its base; says which line is at fault and what to do."""


@dataclass(frozen=True)
class Hunk:
    """Lines that stand together, as Hunk(12, ("-x = 1", "+x = 2")). first: the number of the first, counted from 1."""

    first: int
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] in "- "]

    @property
    def new(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] in "+ "]

    def numbered(self) -> Iterator[tuple[int, str]]:
        """The number and the text of each line that the base must have."""
        return ((self.first + i, line[1:]) for i, line in enumerate(self.lines) if line[0] in "- ")


def hunks_of(text: str, first: int = 1) -> list[Hunk]:
    """The hunks of a patch whose first line has the number `first` in its file. Raises PatchError."""
    found: list[Hunk] = []
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], first):
        if line and line[0] not in "-+ ":
            raise PatchError(f'line {number}, {line!r}, begins with neither "-", "+" nor a space')
        if line:
            lines.append(line)
        elif lines:
            found.append(Hunk(number - len(lines), tuple(lines)))
            lines = []
    for hunk in found:
        if not hunk.old:
            raise PatchError(f"line {hunk.first}: say where this goes, by a neighbouring line begun with a space")
        if hunk.old == hunk.new:
            raise PatchError(f"line {hunk.first}: this hunk changes nothing")
    if not found:
        raise PatchError(f"line {first}: nothing is changed")
    return found


def patched(base: str, hunks: Sequence[Hunk], called: str = "the base") -> str:
    """`base` with all hunks applied, ended by one line break.

    called: what errors call the base. Raises PatchError where a hunk's lines are found nowhere or in several places,
    and where two hunks change the same line.
    """
    lines = base.splitlines()
    places = sorted(((_only_place(lines, hunk, called), hunk) for hunk in hunks), key=lambda one: one[0])
    made: list[str] = []
    done, last = 0, None
    for start, hunk in places:
        if start < done:
            raise PatchError(f"the hunks of line {last.first} and line {hunk.first} overlap: make them one")
        made += [*lines[done:start], *hunk.new]
        done, last = start + len(hunk.old), hunk
    return "\n".join([*made, *lines[done:]]) + "\n"


def _only_place(lines: list[str], hunk: Hunk, called: str) -> int:
    places = [i for i in range(len(lines)) if lines[i : i + len(hunk.old)] == hunk.old]
    if len(places) > 1:
        number, text = next(hunk.numbered())
        raise PatchError(
            f"line {number}, {text!r}, and what follows is found {len(places)} times in {called}: "
            "add neighbouring lines of one of the places, begun with a space"
        )
    if not places:
        why = _not_found(lines, hunk, called)
        raise PatchError(f"{why}. If {called} was edited, make the same mistake in it as it is now")
    return places[0]


def _not_found(lines: list[str], hunk: Hunk, called: str) -> str:
    for number, text in hunk.numbered():
        if text not in lines:
            return f"line {number}, {text!r}, is found 0 times in {called}"
    return f"the lines from {hunk.first} are found in {called}, but not one after the other"
