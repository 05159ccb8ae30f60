"""Lab 06: an optimizer that keeps more than it may stands out of the budget that is watched from outside."""

from __future__ import annotations

import random

import pytest

from grading.demo.examples import example
from grading.hidden import hidden_of
from labkit import exercises
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.spec import CaseRun, MiB
from tests.exercises.harness import PATIENCE_S, answers_in, solution_of

WATCHED_FROM = 32 * MiB
"""What a process may grow beyond its budget before it is doubted (`grading.supervisor.witness`)."""


@pytest.mark.lab("06")
@pytest.mark.full("answers")
@pytest.mark.parametrize(
    "wrong",
    [
        "06-adamw/keeps_the_gradient",
        "06-bf16-states/master_copy",
        "06-adam8bit/nothing_quantized",
        "06-adafactor/full_matrix_kept_beside",
        "06-step-in-backward/keeps_a_copy_of_each",
        "06-foreach/a_list_of_means_too",
        "06-foreach/roots_kept",
        "06-muon/second_moment_too",
    ],
)
def test_what_is_kept_stands_out_of_the_watched_budget(wrong: str) -> None:
    exercise = exercises.find(wrong.partition("/")[0])
    (budget,) = (one for one in oracle_of(exercise.id).budgets if one.name == "peak_bytes")
    (case,) = hidden_of(exercise.id).memory_cases(random.Random(0))
    tree = make_inputs(exercise, case, 0)

    def peak_bytes(source: str) -> float:
        answers = gather_answers(exercise, answers_in(exercise.id, source))
        found = observe(exercise, answers, case, tree, wall_s=PATIENCE_S, lend=True)
        assert found.trouble is None
        return found.measured["peak_bytes"]

    limit = budget.limit(CaseRun(case, tree))
    assert peak_bytes(solution_of(exercise.id)) <= limit
    assert peak_bytes(example("wrong", wrong).source) > limit + WATCHED_FROM
