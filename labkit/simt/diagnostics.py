"""The compiler's messages as data, shown with the student's own line and a caret.

NVRTC prints `k.cu(3): error: identifier "y" is undefined`, then the line and a caret under the column. Only lines of
the student's own source are shown; of a message about a header, its text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_HEAD = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<kind>catastrophic error|error|warning)(?: #[\w-]+)?: (?P<text>.*)$"
)
_END = re.compile(r"^At end of source: (?P<kind>error|warning)(?: #[\w-]+)?: (?P<text>.*)$")
_CARET = re.compile(r"^(\s*)\^\s*$")


@dataclass(frozen=True)
class Diagnostic:
    """One message. line, column: of the student's source, from 1; column 0 and line 0 where they are not known.

    Example: Diagnostic("error", 3, 11, 'identifier "y" is undefined').
    """

    kind: str
    line: int
    column: int
    text: str


class CudaCompileError(Exception):
    """The source does not compile. Its text shows every error with the source line and a caret.

    students_line: the line of the first, as in "line 3: x[0] = z;".
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: str) -> None:
        self.diagnostics = tuple(diagnostics)
        rows = source.splitlines()
        first = next((one.line for one in self.diagnostics if 1 <= one.line <= len(rows)), None)
        self.students_line = f"line {first}: {rows[first - 1].strip()}" if first else None
        super().__init__("\n\n".join(render(one, source) for one in diagnostics))


def parse_log(log: str, name: str) -> list[Diagnostic]:
    """The messages of NVRTC's log in its order. name: the file name that the source was compiled under."""
    found: list[Diagnostic] = []
    open_message: list[str] | None = None
    for row in log.splitlines():
        if end := _END.match(row):
            found.append(Diagnostic(end["kind"], 0, 0, f"at the end of the source: {end['text'].strip()}"))
            open_message = None
        elif head := _HEAD.match(row):
            own = head["file"].replace("\\", "/").rsplit("/", 1)[-1] == name
            kind = "error" if "error" in head["kind"] else "warning"
            found.append(Diagnostic(kind, int(head["line"]) if own else 0, 0, head["text"].strip()))
            open_message = []
        elif open_message is not None:
            caret = _CARET.match(row)
            if caret and open_message and found[-1].line:
                found[-1] = _with_column(found[-1], len(caret[1]) - 1)
            open_message = None if caret or not row.strip() else [*open_message, row]
    return found


def _with_column(one: Diagnostic, column: int) -> Diagnostic:
    # NVRTC indents the quoted line by two spaces; the caret stands under the column of that line.
    return Diagnostic(one.kind, one.line, max(column, 0), one.text)


def errors(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Those that are errors."""
    return [one for one in diagnostics if one.kind == "error"]


def render(one: Diagnostic, source: str) -> str:
    """The message over the source's line and a caret; the message alone where the line is not known.

    Example:
        line 3: error: identifier "y" is undefined
            x[i] = y;
                   ^
    """
    rows = source.splitlines()
    if not 1 <= one.line <= len(rows):
        return f"{one.kind}: {one.text}"
    shown = rows[one.line - 1].expandtabs(1).rstrip()
    lines = [f"line {one.line}: {one.kind}: {one.text}", f"    {shown}"]
    if one.column:
        lines.append("    " + " " * (one.column - 1) + "^")
    return "\n".join(lines)
