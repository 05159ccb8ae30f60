"""What the tests of refused sources share: parts of a bad lab, and the check that it is refused for that reason."""

import pytest

from grading.build import BadSource, build, problems
from tests.build import lesson
from tests.build.lesson import EXERCISES, solution

KNOWN = (
    "is declared in labkit.exercises.lab20, which declares 20-decode, 20-guess; "
    "is its slug in ORDER of labkit/exercises/lab20/__init__.py?"
)
GUESS = EXERCISES["20-guess"]


def function(body):
    """The solution cell of 20-decode with this body, four spaces in front of each line."""
    return solution("20-decode", "def decode(bits):\n" + "\n".join(f"    {line}" for line in body.split("\n")))


REGION = "### BEGIN SOLUTION\nreturn bits + 1\n### END SOLUTION"


def place(body, where):
    """The line meant by a number, by "text", or by "text (n)" for the nth line that has it."""
    if isinstance(where, int):
        return where
    needle, _, nth = where.removesuffix(")").rpartition(" (")
    if needle and nth.isdigit():
        return lesson.line_of(body, needle, int(nth))
    return lesson.line_of(body, where)


def assert_refused(folder, changes, where, reason):
    """The lab with these changes is refused for this reason alone, in the working folder `folder`.

    where: the line at fault: its text, or a number; reason: the whole of it.
    """
    body = lesson.source(**changes)
    path = lesson.write(folder / "solutions", body)
    found = list(map(str, problems(path, EXERCISES)))
    assert found == [f"solutions/20_small_lab.py:{place(body, where)}: {reason}"]
    with pytest.raises(BadSource):
        build(path, EXERCISES)
