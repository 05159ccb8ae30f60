"""Sentences of a new lab's template that tell its author what to write there, found where a lab still has them.

`python -m grading new` writes them (grading/scaffold/templates). They are looked for when a lab is handed out, not when
it is built: it is begun with them. Whether what stands in their place is any good is for a person to judge.
"""

from __future__ import annotations

from pathlib import Path

SENTENCES = (
    "Open with a number that surprises",
    "Which question does this lab answer?",
    "You will write one small function and measure it.",
    "Say why it matters, then what it is",
    "Name what the numbers and formulas above come from.",
)
"""The beginning of each, or all of it: what stands in one line of the template."""


def left_in(path: Path) -> list[str]:
    """Where a lab's source or notebook still has one, as 'solutions/21_my_lab.py:4 says "Open with a number ..."'."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f'{path}:{number} says "{sentence}"'
        for number, line in enumerate(lines, 1)
        for sentence in SENTENCES
        if sentence in line
    ]
