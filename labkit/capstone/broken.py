"""The error for a script that broke a rule of the game."""

from __future__ import annotations


class RuleBroken(RuntimeError):
    """A script did what the rules of the game do not allow.

    kind: "rule", or which rule, as in `play.Stopped`.
    """

    def __init__(self, text: str, kind: str = "rule") -> None:
        super().__init__(text)
        self.kind = kind
