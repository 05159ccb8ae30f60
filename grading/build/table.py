"""The tables of labs and exercises that README.md shows, generated from the declarations.

Only what stands between the two marker lines is replaced; the rest of the file is its author's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from grading.build.directives import counted
from labkit.labs import find_lab, in_hours
from labkit.spec import Exercise

PLACE = "exercises"
LABS_HEAD = "| lab | exercises | points | core | optional | needs |\n|---|---:|---:|---|---|---|"
SUMMARY = "Every exercise, with points, difficulty and minutes"
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
    """Markdown, a row for each lab, then folded away a table for each; `notebooks` has the names of their notebooks by
    lab ("02": "02_float_formats")."""
    labs = {lab: list(of_lab) for lab, of_lab in groupby(exercises, key=lambda exercise: exercise.id[:2])}
    rows = [lab_row(lab, of_lab, notebooks.get(lab)) for lab, of_lab in labs.items()]
    tables = [lab_table(lab, of_lab, notebooks.get(lab)) for lab, of_lab in labs.items()]
    folded = ["<details>", f"<summary>{SUMMARY}</summary>", "", "\n\n".join(tables), "", "</details>"]
    return "\n".join([LABS_HEAD, *rows, "", *folded])


def lab_row(lab: str, exercises: list[Exercise], notebook: str | None) -> str:
    """One lab: its name, how much it asks, how long its core and what is optional take with reading, what it needs."""
    declared = find_lab(lab)
    name = f"[{lab}](notebooks/{notebook}.ipynb) {declared.title}" if notebook else f"{lab} {declared.title}"
    points = sum(exercise.points for exercise in exercises if not exercise.optional)
    times = [in_hours(minutes) if minutes else "–" for minutes in (declared.minutes, declared.optional_minutes)]
    cells = [name, str(len(exercises)), f"{points:g}", *times, ", ".join(declared.needs) or "–"]
    return f"| {' | '.join(cells)} |"


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
