"""An answer on the hidden cases of many students: a tolerance too narrow shows on some draws and not on others.

The draws are numbered and the same each time; those of a course come from its own key. Large memory cases stay out.
"""

from __future__ import annotations

from collections.abc import Iterator

from grading.hidden import Secret
from grading.tryout.cases import CaseSet
from labkit.check.verdict import Verdict

KEY = b"draws that an author looks at"


def case_sets(exercise_id: str, n_draws: int) -> Iterator[CaseSet]:
    """The hidden cases of students 1, 2, ..."""
    for number in range(1, n_draws + 1):
        yield CaseSet(exercise_id, Secret(KEY, exercise_id[:2], str(number), "first"))


def verdicts(exercise_id: str, source: str, n_draws: int) -> Iterator[Verdict]:
    """What the grader would conclude for these students with this answer, one draw at a time."""
    for cases in case_sets(exercise_id, n_draws):
        yield cases.verdict(cases.runs(source))
