"""Lab 04: calls of small functions by the names of their arguments, because seven or eight numbers alone say little."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.exercises.lab01.function_calls import Call
from labkit.oracles.calls import as_call
from labkit.spec import CaseRun, Observation


def call_by_names(arguments: Mapping[str, tuple[str, ...]]) -> Callable[[Observation], str]:
    """For `Oracle.call`: "padded(n=50257, itemsize=2, multiple_bytes=128)". arguments: each function's, in order."""

    def call(run: CaseRun[Call]) -> str:
        names = arguments[run.case.function]
        return as_call(run.case.function, **dict(zip(names, run.case.arguments, strict=True)))

    return call
