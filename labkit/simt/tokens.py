"""PTX text as tokens, a list of statements' worth at a time. Knows nothing of what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<real>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b)
      | (?P<number>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?)
      | (?P<word>\.[A-Za-z_$][\w$]*|%?[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)*)
      | (?P<mark>[-+!|{}()\[\],;:@<>=_])
    """,
    re.VERBOSE | re.DOTALL,
)


class PtxSyntaxError(ValueError):
    """The PTX cannot be read: of an inline asm statement, or of a compiler newer than this reader."""


@dataclass
class Tokens:
    """The tokens of a text and a place in them."""

    items: list[str]
    at: int = 0
    context: str = field(default="")

    @property
    def next(self) -> str:
        """The token at the place; "" behind the last."""
        return self.items[self.at] if self.at < len(self.items) else ""

    def take(self) -> str:
        """The token at the place, which moves on."""
        token = self.next
        self.at += 1
        return token

    def expect(self, *wanted: str) -> str:
        """Take a token that has to be one of these."""
        token = self.take()
        if token not in wanted:
            shown = " ".join(self.items[max(self.at - 8, 0) : self.at + 1])
            raise PtxSyntaxError(f"expected {' or '.join(wanted)} in the PTX, found {token!r} at: {shown}")
        return token

    def accept(self, token: str) -> bool:
        """Take this token if it stands at the place."""
        if self.next == token:
            self.at += 1
            return True
        return False

    def skip_braces(self) -> None:
        """Skip {…}, which may hold further braces."""
        self.expect("{")
        depth = 1
        while depth:
            token = self.take()
            if not token:
                raise PtxSyntaxError("a { of the PTX is never closed")
            depth += (token == "{") - (token == "}")


def tokenize(text: str) -> Tokens:
    """Split PTX into tokens. Raises `PtxSyntaxError` for a character that PTX does not have."""
    items, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            row = text.count("\n", 0, at)
            raise PtxSyntaxError(f"the PTX cannot be read at: {text.splitlines()[row].strip()[:80]}")
        if found.lastgroup != "space":
            items.append(found[0])
        at = found.end()
    return Tokens(items)
