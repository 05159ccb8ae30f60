"""A small lab to build in tests: its declarations, its source text cell by cell, and ways to spoil it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from labkit.labs import LABS
from labkit.spec import Answer, Exercise

WITHOUT_MINUTES = tuple(replace(lab, minutes=0, optional_minutes=0) if lab.id == "20" else lab for lab in LABS)
"""The labs, of which lab 20 does not say how long it takes: the lesson is called so, and is another one."""


def exercise(slug: str, *answers: Answer, points: float = 2, **changes) -> Exercise:
    fields = {
        "id": f"20-{slug}",
        "title": f"The {slug}",
        "points": points,
        "minutes": 15,
        "difficulty": 2,
        "answers": answers,
        "public": (),
        "inputs": lambda case, generator: {},
        "drive": lambda answers, case, tree, stage: {},
    }
    return Exercise(**fields | changes)


def declared(*exercises: Exercise) -> dict[str, Exercise]:
    return {each.id: each for each in exercises}


EXERCISES = declared(
    exercise("decode", Answer("decode"), points=3),
    exercise("guess", Answer("guess", kind="value"), points=0.5, minutes=1, difficulty=1),
)

HINTS = "\n".join(f"<details><summary>Hint {i}</summary>\n\nThink of {i}.\n\n</details>" for i in (1, 2, 3))


def meta(grade_id: str, **flags) -> dict:
    return {
        "grade": False,
        "grade_id": grade_id,
        "locked": False,
        "schema_version": 3,
        "solution": False,
        "task": False,
    } | flags


def cell(body: str, kind: str = "", tags: str = "", **nbgrader) -> str:
    """One cell in percent format; text is commented, code is not."""
    header = " ".join(part for part in ["# %%", f"[{kind}]" if kind else "", tags] if part)
    if nbgrader:
        header += f" nbgrader={json.dumps(nbgrader)}"
    if kind:
        body = "\n".join(f"# {line}".rstrip() for line in body.split("\n"))
    return f"{header}\n{body}\n"


def text(body: str) -> str:
    return cell(body, "markdown")


def solution(grade_id: str, body: str, **flags) -> str:
    return cell(body, **meta(grade_id, solution=True, **flags))


def check(exercise_id: str, points: float, *names: str, **flags) -> str:
    call = f"check({', '.join([json.dumps(exercise_id), *names])})"
    return cell(call, **meta(f"{exercise_id}-check", **{"grade": True, "locked": True, "points": points} | flags))


DECODE = '''def decode(bits: int) -> float:
    """The value of a bit pattern."""
    ### BEGIN SOLUTION
    sign = -1 if bits >> 15 else 1
    return sign * (bits & 0x7FFF) / 1024
    ### END SOLUTION
'''

CELLS = {
    "title": text("# A small lab\n\nWhy it matters."),
    "setup": cell("from labkit import check\n%matplotlib inline", **meta("20-setup", locked=True)),
    "decode-text": text(f"## Decode\n\n[[exercise 20-decode]]\n\n{HINTS}"),
    "decode": solution("20-decode", DECODE),
    "decode-check": check("20-decode", 3, "decode"),
    "figure": cell("print(decode(1))", tags='tags=["figure"]'),
    "guess-text": text(f"## Guess\n\n[[exercise 20-guess]]\n\n{HINTS}"),
    "guess": solution("20-guess", "### BEGIN SOLUTION\nguess = 2.0**-24\n### END SOLUTION"),
    "guess-check": check("20-guess", 0.5, "guess"),
    "open": cell(
        "Why is it so?\n\n### BEGIN SOLUTION\nBecause the rounding of the sum loses it.\n### END SOLUTION",
        "markdown",
        **meta("20-why", grade=True, solution=True, points=2),
    ),
    "task": cell(
        "Draw it.\n\n### BEGIN MARK SCHEME\nOne point for axes.\n### END MARK SCHEME",
        "markdown",
        **meta("20-draw", task=True, locked=True, points=1),
    ),
    "end": text("## Sources\n\nGoldberg 1991."),
}


def source(**changes: str | None) -> str:
    """The lab's text; a change replaces the cell of that name (with _ for -), None leaves it out."""
    named = {name.replace("_", "-"): body for name, body in changes.items()}
    assert named.keys() <= CELLS.keys()
    return "\n".join(body for body in (CELLS | named).values() if body is not None)


def write(folder: Path, body: str, name: str = "20_small_lab.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body, encoding="utf-8")
    return path


def line_of(body: str, needle: str, nth: int = 1) -> int:
    """The number of the nth line that contains this."""
    return [i for i, line in enumerate(body.split("\n"), 1) if needle in line][nth - 1]
