"""What an oracle reads: the expectation and shared results are computed once a run; the conditions that recur."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from labkit.check.api import examine
from labkit.oracles.hints import any_of, looks_like, not_written_yet, once
from labkit.spec import CANNOT_TELL, Case, CaseRun, Hint
from tests.exercises.small import DOUBLE, ORACLE, cell

RUN = CaseRun(Case(), {"x": 3.0}, {"out": 9.0}, expect=lambda run: {"out": 2 * run.tree["x"]})


def test_what_was_expected_is_computed_once_a_case_however_many_hints_ask() -> None:
    asked = []

    def expect(run: CaseRun) -> dict:
        asked.append(run.case)
        return {"out": run.tree["x"] * 2}

    hints = tuple(
        Hint(lambda run: run.expected is None or run.expected["out"].isnan().any(), "never") for _ in range(5)
    )
    verdict = examine(DOUBLE, replace(ORACLE, expect=expect, diagnose=hints), cell("double = lambda x: x * 3"), [""])
    assert (verdict.outcome, verdict.hint, asked) == ("failed", None, list(DOUBLE.public))


def test_a_shared_result_is_worked_out_once_for_a_run_and_its_further_arguments() -> None:
    worked = []

    @once
    def scaled(run: CaseRun, factor: int = 1) -> float:
        worked.append(factor)
        return factor * run.tree["x"]

    run = replace(RUN)
    assert [scaled(run), scaled(run), scaled(run, 2), scaled(run, 2)] == [3.0, 3.0, 6.0, 6.0]
    assert worked == [1, 2]
    assert scaled(replace(run, tree={"x": 5.0})) == 5.0 and scaled(run) == 3.0


def test_work_that_failed_fails_again() -> None:
    @once
    def unreadable(run: CaseRun) -> float:
        return run.got["missing"]

    for _ in range(2):
        with pytest.raises(KeyError, match="missing"):
            unreadable(RUN)


def test_any_of_several_conditions() -> None:
    yes, no = (lambda run: run.tree["x"] == 3), (lambda run: False)
    assert any_of(no, yes)(RUN) and not any_of(no, no)(RUN) and not any_of()(RUN)

    def cannot_tell(run: object) -> object:
        return CANNOT_TELL

    assert any_of(cannot_tell, yes)(RUN) is True
    assert any_of(no, cannot_tell, no)(RUN) is CANNOT_TELL


def test_a_value_looks_like_a_mistake_only_where_the_mistake_shows() -> None:
    squared = looks_like("out", lambda run: run.tree["x"] ** 2, math.isclose)
    assert squared(RUN)
    assert not squared(replace(RUN, got={"out": 6.0}))
    # 2 x and x² are the same there, so that it says nothing of which was computed.
    assert not squared(replace(RUN, tree={"x": 2.0}, got={"out": 4.0}))


def test_the_first_function_that_is_blank_is_named() -> None:
    hints = not_written_yet(("first", "second"), lambda run, name: run.got["blank"] == name, right="in all cases")
    run = replace(RUN, got={"blank": "second"})
    assert [hint.text for hint in hints if hint.when(run)] == [
        "second has not been written yet. What you have written is right in all cases: carry on."
    ]
