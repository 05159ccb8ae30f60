"""Lab 01: what the oracles of the exercises with several small functions share."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import NOT_ANSWERED, Call
from labkit.oracles.calls import as_call
from labkit.spec import CaseRun, Observation


def call_of(run: Observation) -> str:
    """The call that the case makes."""
    return as_call(run.case.function, *run.case.arguments)


def is_blank(run: CaseRun[Call], name: str) -> bool:
    """Whether the case calls this function, and it is still blank."""
    return run.case.function == name and run.got["out"] == NOT_ANSWERED
