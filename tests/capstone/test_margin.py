"""What counts as right in 20-budget learns enough on any language, not by luck."""

from __future__ import annotations

from statistics import mean, stdev

import pytest

from grading.demo.examples import examples
from labkit.capstone import MACHINES, TARGET_LOSS, TINY, bill, loss_of, read, train_tiny
from labkit.capstone.score import SPREAD
from tests.exercises.harness import solution_of

LANGUAGES = tuple(7919 * number + 5 for number in range(100, 108))
N_DEVIATIONS = 2
"""A script misses the target on one language of forty at the most."""
RIGHT = {"solution": solution_of("20-budget"), **{one.name: one.source for one in examples("right", "20-budget")}}


@pytest.mark.full("answers")
@pytest.mark.later
@pytest.mark.lab("20")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_script_reaches_the_target_with_room_on_any_language(name: str) -> None:
    script = read(RIGHT[name])
    machine = MACHINES[script.machine]
    small = bill(script, TINY, machine)
    losses = [loss_of(train_tiny(script, seed, small, machine).weights, seed) for seed in LANGUAGES]
    assert mean(losses) + N_DEVIATIONS * stdev(losses) < TARGET_LOSS, losses
    assert max(losses) - min(losses) < 1.5 * SPREAD, losses
