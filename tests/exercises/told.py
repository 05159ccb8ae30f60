"""The text that a student reads about an answer to the small exercise, and its comparison word for word."""

from __future__ import annotations

from textwrap import dedent

from labkit.check.text import MAX_LINES, WIDTH, as_text
from tests.exercises.small import examined


def told(source: str, *args: object, **changes: object) -> str:
    text = as_text(examined(dedent(source).strip() + "\n", *args, **changes))
    assert len(text.splitlines()) <= MAX_LINES
    assert max(map(len, text.splitlines())) <= WIDTH
    return text


def same_text(text: str, expected: str) -> None:
    assert text == dedent(expected).strip("\n")
