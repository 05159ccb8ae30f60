"""Hidden cases can be drawn for every student: no draw looks for what does not exist, and none takes long.

What answers make of them, test_answers.py, test_secrets.py and test_lucky_draws.py say.
"""

from __future__ import annotations

import pytest

from grading import hidden
from grading.hidden import Secret, hidden_of
from labkit import exercises

MANY, FEW = 100, 4
CASES_OF_AN_EXERCISE = 100


def of_each(n_students: int) -> None:
    """Draws the cases of every exercise for so many students. Raises RuntimeError where there are none."""
    for name in exercises.everything():
        declared = hidden_of(name)
        for student in range(n_students):
            secret = Secret(b"a third course key", "lab", f"student {student}", "first")
            drawn = (*declared.cases(secret.draw(name)), *declared.memory_cases(secret.draw(name)))
            assert 0 < len(drawn) <= CASES_OF_AN_EXERCISE, (name, student)


def test_cases_are_drawn_for_some_students() -> None:
    of_each(FEW)


@pytest.mark.full("answers")
@pytest.mark.timeout(900)
def test_cases_are_drawn_for_a_large_class() -> None:
    of_each(MANY)


def test_a_draw_that_looks_for_nothing_ends_with_an_error() -> None:
    with pytest.raises(
        RuntimeError, match=r"none of 20,000 draws tells what it has to: .*<lambda> in tests\.exercises"
    ):
        hidden.drawn(lambda: 1, lambda found: found > 1)
    numbers = iter(range(5))
    assert hidden.drawn(lambda: next(numbers), lambda found: found > 2) == 3
