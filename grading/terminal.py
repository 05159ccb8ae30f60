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
