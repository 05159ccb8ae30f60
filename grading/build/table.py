"""The table of all exercises that README.md shows, generated from the declarations.

Only what stands between the two marker lines is replaced; the rest of the file is its author's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from grading.build.directives import counted
from labkit.labs import find_lab, in_hours
from labkit.spec import Exercise

PLACE = "exercises"
HEAD = "| exercise | what | points | difficulty | minutes without reading |\n|---|---|---:|---:|---:|"


class NoPlaceForTable(Exception):
    """The text lacks the two marker lines, in order and once each."""

    def __init__(self, name: str) -> None:
        begin, end = markers(name)
        super().__init__(f"it needs the lines {begin} and {end}, once each and in this order")


def markers(name: str) -> tuple[str, str]:
    """The lines before and after what is generated."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def table(exercises: Sequence[Exercise], notebooks: Mapping[str, str]) -> str:
    """Markdown, one table a lab; `notebooks` has the name of each lab's notebook ("02": "02_float_formats")."""
    labs = groupby(exercises, key=lambda exercise: exercise.id[:2])
    return "\n\n".join(lab_table(lab, list(of_lab), notebooks.get(lab)) for lab, of_lab in labs)


def lab_table(lab: str, exercises: list[Exercise], notebook: str | None) -> str:
    """One lab: a line that sums it up, and a row for each exercise."""
    core = [exercise for exercise in exercises if not exercise.optional]
    points = counted(sum(exercise.points for exercise in core), "point")
    if len(core) < len(exercises):
        points += f" and {sum(exercise.points for exercise in exercises if exercise.optional):g} extra"
    head = f"**[{notebook}](notebooks/{notebook}.ipynb)**" if notebook else f"**{lab}**"
    line = f"{head} · {counted(len(exercises), 'exercise')} · {points} · {time_in_words(lab, exercises)}"
    return "\n".join([line, "", HEAD, *map(row, exercises)])


def time_in_words(lab: str, exercises: list[Exercise]) -> str:
    """Reading and exercises together, where the lab declares it; else what its exercises say."""
    declared = find_lab(lab)
    if not declared.stands:
        return f"exercises about {in_hours(sum(exercise.minutes for exercise in exercises))}"
    more = f", {in_hours(declared.optional_minutes)} more for what is optional" if declared.optional_minutes else ""
    return f"about {in_hours(declared.minutes)} with reading{more}"


def row(exercise: Exercise) -> str:
    """One exercise."""
    title = exercise.title.replace("|", "\\|")
    points = f"+{exercise.points:g} (optional)" if exercise.optional else f"{exercise.points:g}"
    return f"| {exercise.id} | {title} | {points} | {exercise.difficulty} of 3 | {exercise.minutes} |"


def with_table(text: str, generated: str, name: str = PLACE) -> str:
    """The text with this table between its marker lines. Raises NoPlaceForTable."""
    first, last = markers(name)
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end) or first in after or last in after or last in before:
        raise NoPlaceForTable(name)
    return f"{before}{first}\n{generated}\n{last}{after}"
