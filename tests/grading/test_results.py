"""What a worker returns is stored where a run of ours could have said it, and refused where it could not."""

from __future__ import annotations

import copy
import json
import math
from types import SimpleNamespace

import pytest

from grading.isolation.faults import InfrastructureFault
from grading.results import read_result, save_result

VERDICT = {
    "exercise": "00-warm-up",
    "outcome": "passed",
    "score": 1.0,
    "headline": "00-warm-up: all 3 cases pass.",
    "rows": [["case", "n=3"]],
    "hint": None,
    "budgets": [],
    "n_passed": 3,
    "n_cases": 3,
    "record": None,
}
CELL = {"ok": True, "error": None, "printed": "", "value": None, "skipped": False}
RESULT = {
    "key": "5f3c",
    "lab": "00_small",
    "student": "ada",
    "exercises": {"00-warm-up": {"public": VERDICT, "hidden": VERDICT}},
    "cells": {"00-warm-up": CELL},
    "notes": [],
    "isolation": "kernel",
    "usage": {"wall_s": 3.1},
}
JOB = SimpleNamespace(key="5f3c", lab="00_small", student="ada")


@pytest.fixture
def course(tmp_path) -> SimpleNamespace:
    return SimpleNamespace(result=lambda lab, key: tmp_path / f"{key}.json")


def forged(part: str, **fields: object) -> dict:
    """The result with other fields in its verdict on the public or the hidden cases, or in its cell."""
    result = copy.deepcopy(RESULT)
    if part == "cell":
        result["cells"]["00-warm-up"].update(fields)
    else:
        result["exercises"]["00-warm-up"][part].update(fields)
    return result


def test_a_result_is_stored_and_read_again(course) -> None:
    saved = save_result(course, JOB, RESULT)
    assert read_result(course.result("00_small", "5f3c")) == saved
    assert json.loads(course.result("00_small", "5f3c").read_text())["student"] == "ada"


@pytest.mark.parametrize("score", [7.5, 1.0001, -1, -0.01, math.nan, math.inf, "1", None, True, [1]])
@pytest.mark.parametrize("part", ["public", "hidden"])
def test_a_score_that_no_run_gives_is_refused(course, part: str, score: object) -> None:
    with pytest.raises(InfrastructureFault, match=r"what came back is no result .*00-warm-up has a score of"):
        save_result(course, JOB, forged(part, score=score))
    assert not course.result("00_small", "5f3c").exists()


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("hidden", {"outcome": "won"}),
        ("hidden", {"outcome": ["passed"]}),
        ("public", {"exercise": "00-other"}),
        ("public", {"headline": 7}),
        ("hidden", {"hint": ["<b>"]}),
        ("hidden", {"rows": [["case", 7]]}),
        ("cell", {"printed": 7}),
        ("cell", {"error": {"text": "x"}}),
    ],
)
def test_what_could_not_be_shown_is_refused(course, part: str, fields: dict) -> None:
    with pytest.raises(InfrastructureFault, match="what came back is no result"):
        save_result(course, JOB, forged(part, **fields))
    assert not course.result("00_small", "5f3c").exists()
