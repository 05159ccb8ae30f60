"""The known answers of an exercise, judged for many students: what is not as their files say.

A wrong answer that one draw refuses can pass on another, and be told another mistake on a third. Public cases are the
business of `tests/exercises/test_answers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO

from grading.demo.examples import Example, examples, solution_of
from grading.tryout.draws import case_sets
from labkit.check.verdict import Verdict


@dataclass(frozen=True)
class Finding:
    """An answer that one student's hidden cases judge otherwise than its file says.

    draw: the number of that student, from 1. problem: such as "expected no points", or what its cell raised. verdict:
    none where the cell or the judge raised.
    """

    name: str
    draw: int
    problem: str
    verdict: Verdict | None = None


def known_answers(exercise_id: str) -> tuple[Example, ...]:
    """The solution, the unusual right answers, the wrong ones."""
    solution = Example(exercise_id, "solution", solution_of(exercise_id))
    return (solution, *examples("right", exercise_id), *examples("wrong", exercise_id))


def fault(one: Example, verdict: Verdict) -> str | None:
    """What the verdict lacks: full marks of a right answer; of a wrong one, no points and its hint."""
    if not one.hint:
        return None if verdict.outcome == "passed" else "expected full marks"
    if verdict.score != 0:
        return "expected no points"
    return None if one.hint in (verdict.hint or "") else f"expected a hint with {one.hint!r}"


def findings(exercise_id: str, n_draws: int) -> Iterator[Finding]:
    """Everything that is judged otherwise for students 1, 2, ..., one draw at a time; what they print is not shown."""
    answers = known_answers(exercise_id)
    for number, cases in enumerate(case_sets(exercise_id, n_draws), 1):
        for one in answers:
            try:
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                    verdict = cases.verdict(cases.runs(one.source))
            except Exception as error:
                yield Finding(one.name, number, f"its cell or the judge raised {type(error).__name__}: {error}")
                continue
            if problem := fault(one, verdict):
                yield Finding(one.name, number, problem, verdict)
        for slip in cases.slips:
            yield Finding("the oracle", number, slip)
