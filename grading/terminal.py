"""Text for a terminal: what a student wrote cannot move the cursor, change colours or pose as another line.

What is shown is decided elsewhere.
"""

from __future__ import annotations


def printable(text: object) -> str:
    """The text with every control and formatting character but the newline replaced by "?"; tabs become blanks."""
    return "\n".join(one_line(line) for line in str(text).replace("\r\n", "\n").split("\n"))


def one_line(text: object) -> str:
    """The text on one line, with a "?" for every character that is not printed as itself."""
    return "".join(char if char.isprintable() else "?" for char in str(text).replace("\t", "    "))


def amount_of(name: str, value: object) -> str:
    """A measured or allowed figure with the unit that its name ends in: `wall_s` 1.25 is "wall 1.25 s"."""
    if not isinstance(value, int | float):
        return one_line(f"{name} {value}")
    if name.endswith("_s"):
        return f"{name.removesuffix('_s').replace('_', ' ')} {value:,.6g} s"
    if name.endswith("_bytes"):
        return f"{name.removesuffix('_bytes').replace('_', ' ')} {value / 2**20:,.1f} MiB".strip()
    return f"{name.replace('_', ' ')} {f'{value:,}' if isinstance(value, int) else f'{value:,.6g}'}".strip()
