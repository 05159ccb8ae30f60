"""What an oracle keeps of runs that earn points: with the verdict, never with a student, and of no other runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from grading.supervisor.result import ExerciseResult
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.spec import Answer, Case, CaseRun, Exercise, Observation, Oracle

EXERCISE = Exercise("90-kept", "Kept", 1, 1, 1, (Answer("kept"),), (Case(),), lambda *_: {}, lambda *_: {})


def kept(runs: Sequence[CaseRun]) -> dict:
    return {"values": [run.got["out"] for run in runs]}


def verdict(*values: int, score: float = 1.0) -> Verdict:
    oracle = Oracle("90-kept", expect=lambda run: {"out": 3}, score=lambda runs: score, record=kept)
    return judge(EXERCISE, oracle, [Observation(Case(), {}, {"out": value}) for value in values])


@pytest.mark.parametrize("score", [1.0, 0.5])
def test_a_verdict_with_points_has_the_record_and_comes_back_with_it(score: float) -> None:
    found = verdict(3, 3, score=score)
    assert found.record == {"values": [3, 3]}
    assert Verdict.from_json(found.to_json()) == found


def test_without_points_nothing_is_kept() -> None:
    assert verdict(3, 4).record is None
    assert verdict(3, score=0.0).record is None


def test_a_verdict_that_was_stored_before_there_were_records_is_read() -> None:
    stored = verdict(3).to_json()
    del stored["record"]
    assert Verdict.from_json(stored) == replace(verdict(3), record=None)


def test_a_student_is_shown_no_record() -> None:
    result = ExerciseResult(verdict(3), verdict(3, 3))
    assert result.deciding.record and result.shown.record is None
    assert verdict(3).redacted().record is None
