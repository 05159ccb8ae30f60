"""The PTX of a kernel as text by source line: what the compiler made of each line. Nothing is executed here."""

from __future__ import annotations

import re

from labkit.simt.compiling import FILE
from labkit.simt.lines import read_lines
from labkit.simt.signature import plain_name

_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(")
_LINE = re.compile(r"^\.loc (\d+) ;$")


def ptx_by_line(ptx: str, kernel: str) -> dict[int, list[str]]:
    """Source line -> its instructions in the PTX's order; line 0: those that no line made. {} where there is no kernel.

    Example: {4: ["mov.u32 %r1, %tid.x;", "add.s32 %r2, %r1, 1;"]}.
    """
    found: dict[int, list[str]] = {}
    line, inside = 0, False
    for row in read_lines(ptx, FILE)[0].splitlines():
        text = re.sub(r"\s+", " ", row).strip()
        if entry := _ENTRY.match(text):
            inside, line = plain_name(entry[1]) == kernel, 0
        elif place := _LINE.match(text):
            line = int(place[1]) or line
        elif text == "}":
            inside = False
        elif inside and text.endswith(";") and not text.startswith(("//", ".")):
            found.setdefault(line, []).append(text)
    return found
