"""A budget can ask for the least of something: what is below it fails, and what is above it spends nothing."""

from __future__ import annotations

import math

import pytest
import torch

from labkit.check.judge import judge
from labkit.check.text import as_text
from labkit.oracles.kernels import compiled
from labkit.spec import Answer, Budget, Case, Exercise, Observation, Oracle

EXERCISE = Exercise(
    id="99-wide",
    title="",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("wide"),),
    public=(Case(),),
    inputs=lambda case, gen: {},
    drive=lambda ans, case, tree, stage: {},
)
WIDE = Budget("vector_width", lambda run: 16, "Load wider.", at_least=True)


def verdict(measured: dict[str, float], *budgets: Budget):
    return judge(EXERCISE, Oracle("99-wide", budgets=budgets), [Observation(Case(), {}, {}, {}, measured)])


@pytest.mark.parametrize("width", [16, 32])
def test_enough_is_enough(width: int) -> None:
    found = verdict({"vector_width": width}, WIDE)
    assert (found.passed, found.budgets) == (True, ())


@pytest.mark.parametrize("width", [15, 0, math.nan])
def test_too_little_fails_with_its_hint(width: float) -> None:
    text = as_text(verdict({"vector_width": width}, WIDE))
    assert "too little: vector width" in text
    assert "at least  16 bytes at once" in text
    assert "Load wider." in text


def test_no_figure_fails() -> None:
    assert "no measure of vector_width came back" in as_text(verdict({}, WIDE))


def test_the_compilers_budgets_ask_for_width_and_matrices_and_bound_spills() -> None:
    budgets = compiled(vector_width=8, matrix_instructions=1)
    good = {"vector_width": 8, "matrix_instructions": 4, "spills": 0}
    assert verdict(good, *budgets).passed
    for name, worse in (("vector_width", 4), ("matrix_instructions", 0), ("spills", 1)):
        found = verdict({**good, name: worse}, *budgets)
        assert not found.passed and found.hint == next(one.hint for one in budgets if one.name == name)


def test_a_limit_may_depend_on_the_inputs() -> None:
    budget = Budget("vector_width", lambda run: run.tree["x"].numel(), "Wider.", at_least=True)
    runs = [Observation(Case(), {"x": torch.zeros(n)}, {}, {}, {"vector_width": 4}) for n in (4, 5)]
    found = judge(EXERCISE, Oracle("99-wide", budgets=(budget,)), runs)
    assert (found.n_passed, found.hint) == (1, "Wider.")


def test_a_limit_of_nothing_that_was_kept_is_not_the_case_to_show() -> None:
    budget = Budget("bytes_across", lambda run: run.tree["x"].numel(), "Send less.")
    runs = [Observation(Case(), {"x": torch.zeros(n)}, {}, {}, {"bytes_across": n / 2}) for n in (0, 8)]
    assert judge(EXERCISE, Oracle("99-wide", budgets=(budget,)), runs).budgets == (("bytes_across", 4, 8, "bytes"),)
