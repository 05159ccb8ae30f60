"""Lines of their own in a text cell that are replaced by what is declared, so that it is written once.

`[[exercise 02-decode]]` becomes the exercise's points, difficulty and minutes, `[[time]]` in a lab's opening its
minutes, `[[stop]]` a good place to stop, with what lies behind and what is left. There are no other directives, and no
templates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from labkit.labs import Lab, in_hours, rounded
from labkit.spec import Exercise

LINE = re.compile(r"\s*\[\[(?P<text>[^\[\]]*)\]\]\s*")
EXERCISE = re.compile(r"exercise (?P<id>\S+)")
TIME, STOP = "time", "stop"
INLINE = re.compile(r"\[\[\s*exercise\b")
FENCE = re.compile(r" {0,3}(```+|~~~+)")


def expand(text: str, exercises: Mapping[str, Exercise], lab: Lab, done: Collection[str] = ()) -> str:
    """The text with its directives replaced; `done` are the exercises whose checks come before it.

    Raises KeyError for an exercise that is not declared.
    """
    lines = text.split("\n")
    for offset, directive in directives(text):
        found = exercise_id(directive)
        if found is not None:
            lines[offset] = exercise_line(exercises[found])
        elif directive == TIME:
            lines[offset] = time_line(lab)
        elif directive == STOP:
            lines[offset] = stop_line(lab, exercises, done)
    return "\n".join(lines)


def directives(text: str) -> Iterator[tuple[int, str]]:
    """(line from 0, what stands between the brackets) of each directive; code between fences has none."""
    for offset, line in prose(text):
        match = LINE.fullmatch(line)
        if match:
            yield offset, match["text"].strip()


def misplaced(text: str) -> Iterator[int]:
    """The lines on which a directive stands among other words, where it would be shown as it is."""
    return (offset for offset, line in prose(text) if INLINE.search(line) and not LINE.fullmatch(line))


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines (from 0) outside fenced code."""
    fence = None
    for offset, line in enumerate(text.split("\n")):
        match = FENCE.match(line)
        if fence is None and match is None:
            yield offset, line
        elif fence is None:
            fence = match[1]
        elif match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = None


def exercise_id(directive: str) -> str | None:
    """The id in `exercise ID`; None for any other directive."""
    match = EXERCISE.fullmatch(directive)
    return match["id"] if match else None


def exercise_line(exercise: Exercise) -> str:
    """What a student reads: **Exercise 02-decode** · 3 points · difficulty 2 of 3 · about 15 minutes

    An optional one says "optional, 0.9 extra points".
    """
    return " · ".join(
        [
            f"**Exercise {exercise.id}**",
            points_in_words(exercise),
            f"difficulty {exercise.difficulty} of 3",
            f"about {counted(exercise.minutes, 'minute')}",
        ]
    )


def time_line(lab: Lab) -> str:
    """**Time:** about 2 h, reading and exercises together. If you skipped lab 02, use `torch.finfo`."""
    text = f"**Time:** about {in_hours(lab.minutes)}, reading and exercises together"
    more = f"; what is optional takes about {in_hours(lab.optional_minutes)} more" if lab.optional_minutes else ""
    skipped = "".join(f" If you skipped lab {need}, use {text}." for need, text in lab.instead)
    return f"{text}{more}.{skipped}"


def stop_line(lab: Lab, exercises: Mapping[str, Exercise], done: Collection[str]) -> str:
    """> **A good place to stop.** About 1 h of this lab's core lies behind you, about 1 h 45 min is left."""
    core = [exercise for exercise in exercises.values() if not exercise.optional]
    share = sum(one.minutes for one in core if one.id in done) / sum(one.minutes for one in core)
    behind = rounded(share * lab.minutes)
    part = "this lab's core" if lab.optional_minutes else "this lab"
    text = f"About {in_hours(behind)} of {part} lies behind you, about {in_hours(lab.minutes - behind)} is left."
    return f"> **A good place to stop.** {text}"


def points_in_words(exercise: Exercise) -> str:
    """3 points; optional, 0.9 extra points"""
    return (
        f"optional, {counted(exercise.points, 'extra point')}"
        if exercise.optional
        else counted(exercise.points, "point")
    )


def counted(number: float, noun: str) -> str:
    """1 point, 1.5 points"""
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"
