"""What the hints of many oracles need: results that several of them share, and conditions that recur."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from labkit.spec import CANNOT_TELL, CaseRun, Hint

Condition = Callable[[CaseRun], Any]
"""Of a hint: run -> whether it holds, as `Hint.when`."""
Worked = TypeVar("Worked")


def once(work: Callable[..., Worked]) -> Callable[..., Worked]:
    """work(run, ...), computed once for a run and further (hashable) arguments: nobody may change what it returns."""

    @wraps(work)
    def known(run: CaseRun, *more: Any) -> Worked:
        return run.memo(work, *more)

    return known


def any_of(*conditions: Condition) -> Condition:
    """One of these holds; CANNOT_TELL where none does and one of them cannot tell.

    They are asked in order, and one that raises before any holds counts as no, as everywhere.
    """

    def when(run: CaseRun) -> Any:
        is_open = False
        for condition in conditions:
            answer = condition(run)
            if answer is CANNOT_TELL:
                is_open = True
            elif answer:
                return True
        return CANNOT_TELL if is_open else False

    return when


def looks_like(key: str, mistake: Condition, close: Callable[[Any, Any], bool]) -> Condition:
    """What came back under `key` is close to what mistake(run) makes, and that is not close to what was expected."""

    def condition(run: CaseRun) -> bool:
        wrong = mistake(run)
        return bool(close(run.got[key], wrong)) and not close(wrong, run.expected[key])

    return condition


def not_written_yet(
    names: Iterable[str], is_next: Callable[[CaseRun, str], bool], right: str = "so far"
) -> tuple[Hint, ...]:
    """A hint for each of an exercise's functions, for students who write one after the other.

    is_next: (run, name) -> whether that function is the first blank one, and what is written is right.
    """

    def hint(name: str) -> Hint:
        text = f"{name} has not been written yet. What you have written is right {right}: carry on."
        return Hint(lambda run: is_next(run, name), text)

    return tuple(map(hint, names))
