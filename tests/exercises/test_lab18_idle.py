"""18-naive-idle: the stored figures are the program's, and hidden cases tell the mistakes apart."""

from __future__ import annotations

import random

import pytest

from grading.hidden.lab18.naive_idle import NAIVE_IDLE as HIDDEN
from grading.hidden.lab18.naive_idle import measured
from labkit.exercises.lab18.naive_idle import NAIVE_IDLE, Stages
from labkit.material.lab18 import naive_step
from labkit.oracles.lab18.naive_idle import MEASURED


@pytest.mark.parametrize(("case", "row"), list(zip(NAIVE_IDLE.public, MEASURED, strict=True)))
def test_what_is_stored_is_what_the_simulated_devices_take(case: Stages, row: tuple) -> None:
    found = measured(case)
    assert found["shares"] == pytest.approx(list(row[0]), abs=1e-12)
    assert found["speedup"] == pytest.approx(row[1])


def test_transfers_of_hidden_cases_are_messages_of_a_whole_number_of_bytes() -> None:
    for case in HIDDEN.cases(random.Random(3)):
        assert len(case.transfer_ms) == len(case.forward_ms) - 1
        assert all(abs(100 * ms - round(100 * ms)) < 1e-9 for ms in case.transfer_ms)


def test_the_opening_of_the_lab() -> None:
    step = naive_step(4)
    assert (step.step_s, step.alone_s) == (12.0, 12.0)
    assert step.busy_s == (3.0, 3.0, 3.0, 3.0)
