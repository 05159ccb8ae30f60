"""Lab 01: what the oracles of the exercises with several small functions share."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import NOT_ANSWERED, Call
from labkit.spec import CaseRun


def is_blank(run: CaseRun[Call], name: str) -> bool:
    """Whether the case calls this function, and it is still blank."""
    return run.case.function == name and run.got["out"] == NOT_ANSWERED
