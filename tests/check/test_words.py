"""What a student reads of a case and of a place in the result."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from labkit import exercises
from labkit.check.judge import _full_size_fault
from labkit.check.words import case_in_words, describe, full_size_in_words, what_is_wrong
from labkit.compare import compare
from labkit.oracles import oracle_of
from labkit.oracles.calls import as_call
from labkit.spec import Case, Observation, Oracle, Trouble


@dataclass(frozen=True)
class Rows(Case):
    n_rows: int = 2


RUN = Observation(Rows(), {"x": torch.ones(2, 3)})


def test_a_case_is_shown_by_its_call():
    oracle = Oracle("99-rows", call=lambda run: as_call("scale", run.tree["x"], by=run.case.n_rows))
    assert case_in_words(oracle, RUN) == "scale(<float32 of shape (2, 3)>, by=2)"


def test_a_case_without_a_call_is_shown_by_its_fields():
    assert case_in_words(Oracle("99-rows"), RUN) == "n_rows=2"


def test_a_call_that_lacks_its_inputs_falls_back_to_the_fields():
    oracle = Oracle("99-rows", call=lambda run: as_call("scale", run.tree["x"]))
    assert case_in_words(oracle, Observation(Rows(), None)) == "n_rows=2"


def test_a_call_can_be_pasted():
    text = as_call("extrapolate", {1: 325, 2: 532}, n_layers=5, attention="sdpa")
    assert text == "extrapolate({1: 325, 2: 532}, n_layers=5, attention='sdpa')"
    assert eval(text, {"extrapolate": lambda measured, n_layers, attention: measured[1]}) == 325


def test_large_rates_are_shown_by_their_power_of_ten():
    assert as_call("rows", 312e12, 2.039e12, 1.5, 5e8) == "rows(3.12e+14, 2.039e+12, 1.5, 500000000.0)"


@pytest.mark.parametrize("exercise_id", [id for id, one in exercises.everything().items() if one.full_size])
def test_full_size_is_shown_by_its_call_too(exercise_id):
    exercise, oracle = exercises.find(exercise_id), oracle_of(exercise_id)
    words = full_size_in_words(exercise, oracle)
    assert words.startswith(f"{exercise.answers[0].name}(<")
    run = Observation(exercise.full_size, {}, trouble=Trouble("raised", "it failed"))
    assert ("case", f"{words}: launches are recorded and compiled, but not run") in _full_size_fault(
        exercise, oracle, run
    ).rows


def test_full_size_without_a_call_is_shown_by_its_fields():
    exercise = exercises.find("12-add")
    assert full_size_in_words(exercise, Oracle("12-add")) == describe(exercise.full_size)


def test_a_configuration_is_shown_by_its_fields():
    assert as_call("count", SimpleNamespace(width=4)) == "count(Config(width=4))"


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        ({"out": 1.0}, {"out": 2.0}, "wrong value"),
        ({"loss": 1.0}, {"loss": 2.0}, "wrong loss"),
        ({"gib": 1.0}, {"gib": 2.0}, "wrong number of GiB"),
        ({"out": [1.0, 2.0]}, {"out": [1.0, 3.0]}, "wrong entry 1 of the result"),
        ({"out": {"a": 1.0}}, {"out": {"a": 2.0}}, "wrong a of the result"),
        ({"out": torch.ones(3)}, {"out": torch.tensor([1.0, 1.0, 2.0])}, "wrong value at [2]"),
        ({"out": torch.ones(3)}, {"out": torch.ones(2)}, "wrong shape"),
        ({"w": torch.ones(3)}, {"w": torch.ones(3).double()}, "wrong dtype of w"),
        ({"out": {"a": 1}}, {"out": {"b": 1}}, "wrong names"),
        ({"ranks": [{"out": 1}, {"out": 1}]}, {"ranks": [{"out": 1}, {"out": 2}]}, "rank 1: wrong value"),
        ({"ranks": [{"gib": 1.0}]}, {"ranks": [{"gib": 2.0}]}, "rank 0: wrong number of GiB"),
        ({"ranks": [1, 2]}, {"ranks": [1]}, "wrong length of ranks"),
    ],
)
def test_a_place_in_words(expected, got, words):
    oracle = Oracle("99-rows", places={"gib": "number of GiB"})
    assert what_is_wrong(oracle, compare(expected, got)) == words


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        ({"norms": [1.0, 2.0]}, {"norms": [1.0, 3.0]}, "wrong norm of step 2"),
        ({"ranks": [{"norms": [1.0]}]}, {"ranks": [{"norms": [3.0]}]}, "rank 0: wrong norm of step 1"),
        ({"after": [{"weights": {"b": 1.0}}]}, {"after": [{"weights": {"b": 3.0}}]}, "wrong b after step 1"),
        ({"norms": [1.0]}, {"norms": 1.0}, "wrong type of norms"),
        ({"norms": [[1.0]]}, {"norms": [[3.0]]}, "wrong entry 0 of entry 0 of norms"),
    ],
)
def test_a_place_is_named_by_a_pattern(expected: dict, got: dict, words: str) -> None:
    oracle = Oracle("99-rows", places={"norms.*": "norm of step {0}", "after.*.weights.*": "{1} after step {0}"})
    assert what_is_wrong(oracle, compare(expected, got)) == words
