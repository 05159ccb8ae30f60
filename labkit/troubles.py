"""What an error in a student's program is told as: its kind, its text, and the student's own line that led to it.

It says what happened. What a mark or a hint makes of it is decided elsewhere.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from labkit.limits import OverLimit
from labkit.ranks import CommError, RankFailed
from labkit.ranks.scheduler import Stopped
from labkit.spec import STUB_MESSAGE, Trouble
from labkit.students_code import is_students, line_of
from labkit.tree import without_addresses

MAX_LINE = 120
"""Letters of the student's line that are shown."""


class FailedOn(Exception):
    """An error of the answer in one of the many calls that a driver makes in a case: `FailedOn("classify(trace)")`.

    what: the call, in the student's words. `__cause__` is the error.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@contextmanager
def naming(what: str) -> Iterator[None]:
    """An error of this block is told together with what it was about."""
    try:
        yield
    except Exception as error:
        raise FailedOn(what) from error


def trouble_of(error: BaseException) -> Trouble:
    """What a student is told of this error. Blank answers, limits and another rank's end have kinds of their own."""
    about = ""
    if isinstance(error, RankFailed):
        about, error = f"rank {error.rank}: ", error.__cause__
    if isinstance(error, FailedOn):
        about, error = f"{about}{error.what}: ", error.__cause__
    error = _over_limit(error) or error
    where = _line_of_its_own(error) or _students_line(error)
    try:
        text = str(error)
    except Exception:
        text = "its message cannot be read"
    if isinstance(error, NotImplementedError) and text in ("", STUB_MESSAGE):
        return Trouble("unanswered", STUB_MESSAGE, where if _more_than_a_stub(error) else None)
    if isinstance(error, OverLimit):
        return Trouble(error.kind, f"it did not finish within {error}", where)
    if isinstance(error, Stopped):
        return Trouble("stopped", "another rank ended the run", where)
    if isinstance(error, CommError):
        return Trouble("raised", text, where)
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return Trouble("memory", "it ran out of memory", where)
    name, line = type(error).__name__, without_addresses(text.strip().split("\n")[0][:300])
    return Trouble("raised", about + (f"{name}: {line}" if line else name), where)


def _over_limit(error: BaseException) -> OverLimit | None:
    """The time limit that fired on the way to the error: leaving a `with` block may fail in its turn and hide it."""
    visited: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        one = rest.pop()
        if isinstance(one, OverLimit):
            return one
        if one is not None and id(one) not in visited:
            visited.add(id(one))
            # Read past whatever the student's own class of errors may say of itself.
            rest += [BaseException.__context__.__get__(one), BaseException.__cause__.__get__(one)]
    return None


def _more_than_a_stub(error: NotImplementedError) -> bool:
    """Whether what raised it also does something else, as where an answer stands above the stub's line."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not codes:
        return False
    code = codes[-1]
    arguments = code.co_argcount + code.co_kwonlyargcount
    return code.co_nlocals > arguments or not {*code.co_names} <= {"NotImplementedError"}


def _line_of_its_own(error: BaseException) -> str | None:
    """What an error knows of the student's line that Python cannot: in CUDA C++, say, which it is about."""
    try:
        line = error.students_line
    except Exception:
        # It has none, or is an error that a student made to look like it.
        return None
    if not isinstance(line, str):
        return None
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"


def _students_line(error: BaseException) -> str | None:
    """The last line of the student's own code on the way to the error, with its number in the cell."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((line_of(one.filename, one.lineno) for one in frames if is_students(one.filename)), None)
