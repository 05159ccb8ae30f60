"""Whether a student has written an answer yet, so that a later cell of the notebook can leave it out.

It reads the code and calls nothing; whether an answer is right, `labkit.check` says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from labkit.spec import STUB_MESSAGE


def written(*answers: Callable[..., Any]) -> bool:
    """Whether none of these functions and classes is a blank stub; a line is printed for each that is."""
    blank = [answer.__name__ for answer in answers if _is_blank(answer)]
    for name in blank:
        print(f"Left out here: {name} is still blank.")
    return not blank


def _is_blank(answer: Callable[..., Any]) -> bool:
    parts = vars(answer).values() if isinstance(answer, type) else (answer,)
    functions = (inspect.unwrap(getattr(part, "__func__", part)) for part in parts)
    return any(STUB_MESSAGE in one.__code__.co_consts for one in functions if inspect.isfunction(one))
