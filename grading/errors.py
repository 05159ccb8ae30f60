"""The one error that a person can do something about: what is wrong, and what to do."""

from __future__ import annotations


class UserError(Exception):
    """Shown as one line without a traceback: "what is wrong: what to do"."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}: {remedy}")
        self.problem = problem
        self.remedy = remedy
