"""What a question that has no title of its own is called on a page: by the course's text that stands over it.

Which cells are the course's is for whoever asks; an exercise has a title where it is declared.
"""

from __future__ import annotations

import re

_HEADING = re.compile(r"#{1,6} +(.*)")
_LETTER = re.compile(r"\*\*([A-Z])\.\*\*")


class Whereabouts:
    """The last heading of the Markdown that was read so far, and the letter of the question below it.

    `Whereabouts().read("## Open questions\\n**A.** Why?").name` is "Open questions, A".
    """

    def __init__(self) -> None:
        self._heading = self._letter = ""

    def read(self, source: str) -> Whereabouts:
        for line in source.splitlines():
            if heading := _HEADING.match(line):
                self._heading, self._letter = heading[1].lstrip("#").strip(), ""
            elif letter := _LETTER.match(line):
                self._letter = letter[1]
        return self

    @property
    def name(self) -> str:
        """Nothing where no heading was read."""
        return f"{self._heading}, {self._letter}" if self._letter else self._heading
