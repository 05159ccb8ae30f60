"""What lab 08's LoRA exercises promise beyond the answers in tests/wrong and tests/right."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

from grading.demo.examples import example
from grading.hidden import hidden_of
from labkit import exercises
from labkit.check.judge import judge
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.spec import CaseRun, MiB, Observation
from tests.exercises.harness import PATIENCE_S, answers_in, solution_of

NONSENSE = (None, "text", 3, [], {}, torch.tensor(float("nan")), torch.zeros(3, 0), True)


def test_rank_32_on_1000_by_1000_adds_64_000_numbers() -> None:
    layer = answers_in("08-lora-linear", solution_of("08-lora-linear"))["LoRALinear"](nn.Linear(1000, 1000), 32, 32.0)
    assert sum(p.numel() for p in layer.parameters() if p.requires_grad) == 64_000


def test_an_update_that_is_formed_stands_out_of_the_watched_budget() -> None:
    exercise, (budget,) = exercises.find("08-lora-linear"), oracle_of("08-lora-linear").budgets
    (case,) = hidden_of(exercise.id).memory_cases(random.Random(0))
    tree = make_inputs(exercise, case, 0)

    def peak_bytes(source: str) -> float:
        answers = gather_answers(exercise, answers_in(exercise.id, source))
        found = observe(exercise, answers, case, tree, wall_s=PATIENCE_S, lend=True)
        assert found.trouble is None
        return found.measured["peak_bytes"]

    formed = example("wrong", "08-lora-linear/forms_the_update").source
    limit = budget.limit(CaseRun(case, tree))
    assert peak_bytes(solution_of(exercise.id)) <= limit
    assert peak_bytes(formed) >= limit + 64 * MiB


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")  # from a tensor in place of the dict
@pytest.mark.parametrize(
    "exercise_id", ["08-lora-linear", pytest.param("08-inject", marks=pytest.mark.slow), "08-nf4", "08-frozen-nf4"]
)
def test_nonsense_is_judged_and_not_stumbled_over(exercise_id: str) -> None:
    """Every value that a driver returns replaced by one that makes no sense, in turn."""
    exercise, oracle = exercises.find(exercise_id), oracle_of(exercise_id)
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 0)
    answers = gather_answers(exercise, answers_in(exercise_id, solution_of(exercise_id)))
    right = observe(exercise, answers, case, tree)
    assert judge(exercise, oracle, [right]).score == 1
    judged_by_value = [key for key in right.got if key not in ("dropped", "saved_bytes", "n_unpacked")]
    for key in judged_by_value:
        for value in NONSENSE:
            if value is right.got[key]:  # None or True, where it is right
                continue
            wrong = Observation(case, tree, {**right.got, key: value}, right.back, right.measured)
            assert judge(exercise, oracle, [wrong]).score == 0, (key, value)
    for value in NONSENSE:
        assert judge(exercise, oracle, [Observation(case, tree, value, right.back, right.measured)]).score == 0
