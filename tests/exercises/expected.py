"""What is expected of the verdicts on answers: what fails is listed together, with what a student would read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from grading.demo.examples import Example
from grading.tryout.known import fault
from labkit.check.text import MAX_LINES, WIDTH, as_text
from labkit.check.verdict import Verdict
from labkit.spec import Observation
from tests.exercises.harness import CaseSet


def expect_full_marks(cases: CaseSet, right: Sequence[Example]) -> None:
    """Fail with the verdicts of all answers that do not pass."""
    _expect(cases, [replace(one, hint="") for one in right], fault)


def expect_own_hints(cases: CaseSet, wrong: Sequence[Example]) -> dict[str, list[Observation]]:
    """The runs by an answer's name. Fail with the verdicts of all answers that gain points or get another hint."""

    def fault_or_length(one: Example, verdict: Verdict) -> str | None:
        lines = as_text(verdict).splitlines()
        is_long = len(lines) > MAX_LINES or max(map(len, lines)) > WIDTH
        return fault(one, verdict) or (f"expected at most {MAX_LINES} lines of {WIDTH} characters" if is_long else None)

    return _expect(cases, wrong, fault_or_length)


def _expect(
    cases: CaseSet, answers: Sequence[Example], fault_of: Callable[[Example, Verdict], str | None]
) -> dict[str, list[Observation]]:
    found: dict[str, list[Observation]] = {}
    failures = []
    for one in answers:
        try:
            found[one.name] = cases.runs(one.source)
            verdict = cases.verdict(found[one.name])
        except Exception as error:
            failures.append(f"{one.name}: its cell or the judge raised {type(error).__name__}: {error}")
            continue
        if problem := fault_of(one, verdict):
            failures.append(f"{one.name}: {problem}\n{as_text(verdict)}")
    failures += cases.slips
    if failures:
        of = f"{len(failures)} of {len(answers)} answers to {cases.exercise.id}"
        pytest.fail("\n\n".join([f"{of} are not judged as they should be", *failures]), pytrace=False)
    return found
