"""What a student has not written yet, so that the cells of a notebook that need it can be left out.

`written` reads the code and calls nothing. `blank_met_by` reads an error, and `each_written` makes calls that may meet
a blank answer. Whether an answer is right, `labkit.check` says; how a whole cell is left out, `labkit.left_out`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Mapping
from traceback import walk_tb
from typing import Any, TypeVar

from labkit.spec import STUB_MESSAGE

_FUNCTION = re.compile(r", line \d+, in (\S+)$", re.MULTILINE)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def written(*answers: Callable[..., Any] | str) -> bool:
    """Whether none of these functions, classes and texts is a blank stub; a line is printed for each that is."""
    blank = [_name_of(answer) for answer in answers if _is_blank(answer)]
    for name in blank:
        print(left_out(name))
    return not blank


def each_written(calls: Mapping[Key, Callable[[], Value]]) -> dict[Key, Value]:
    """What each call returns, without those that meet a blank answer or a name that no cell has made yet.

    A line is printed for each that is left out.

        each_written({"one stream": lambda: in_one.duration_s, "two streams": lambda: in_two.duration_s})
    """
    found = {}
    for key, call in calls.items():
        try:
            found[key] = call()
        except Exception as error:
            if blank := blank_met_by(error):
                print(f"Left out here: {key}, because {blank} is still blank.")
            elif isinstance(error, NameError):
                print(f"Left out here: {key}, because no cell has made {error.name} yet.")
            else:
                raise
    return found


def left_out(blank: str) -> str:
    """The line that stands in place of what needs this answer."""
    return f"Left out here: {blank} is still blank."


def blank_met_by(error: BaseException | None) -> str | None:
    """The name of the blank function, class or kernel that an error comes from, also where a rank met it; None of any
    other.
    """
    trace = ""
    while error is not None:
        if blank := getattr(error, "blank", None):
            return blank
        if isinstance(error, NotImplementedError) and str(error) == STUB_MESSAGE:
            codes = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
            if not codes:
                # It was raised in another process, and what came from there are the lines of its trace.
                return ([None, *_FUNCTION.findall(trace)][-1] or "an answer").partition(".")[0]
            stub = next((code for code in reversed(codes) if STUB_MESSAGE in code.co_consts), codes[-1])
            return stub.co_qualname.partition(".")[0]
        trace, error = getattr(error, "trace", ""), error.__cause__
    return None


def _name_of(answer: Callable[..., Any] | str) -> str:
    if isinstance(answer, str):
        return "the kernel" if "__global__" in answer else "the script"
    return answer.__name__


def _is_blank(answer: Callable[..., Any] | str) -> bool:
    if isinstance(answer, str):
        return STUB_MESSAGE in answer
    parts = vars(answer).values() if isinstance(answer, type) else (answer,)
    functions = (inspect.unwrap(getattr(part, "__func__", part)) for part in parts)
    return any(STUB_MESSAGE in one.__code__.co_consts for one in functions if inspect.isfunction(one))
