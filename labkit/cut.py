"""A text cut to a length, with dots where it was cut, so that nobody takes half a line of code for all of it."""

from __future__ import annotations

DOTS = "..."


def cut(text: str, most: int) -> str:
    """cut("x = torch.cat([first, second])", 16) is "x = torch.cat...", and a text of `most` letters is kept whole."""
    return text if len(text) <= most else text[: most - len(DOTS)].rstrip() + DOTS
