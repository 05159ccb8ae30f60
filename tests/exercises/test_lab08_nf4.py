"""What lab 08's 4-bit exercises promise beyond the answers in tests/wrong and tests/right."""

from __future__ import annotations

import random

import pytest
import torch

from grading.demo.examples import example
from grading.hidden import hidden_of
from labkit import exercises
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab08.nf4_read import CODEBOOK
from labkit.oracles.lab08.small_task import loss_after_training
from labkit.spec import CaseRun, MiB
from tests.exercises.harness import PATIENCE_S, answers_in, solution_of


@pytest.fixture(scope="module")
def nf4() -> dict:
    return answers_in("08-nf4", solution_of("08-nf4"))


def test_the_quantiles_are_the_published_values(nf4: dict) -> None:
    assert (nf4["nf4_codebook"]() - torch.tensor(CODEBOOK)).abs().max() < 1e-6


@pytest.mark.parametrize(("double", "bits"), [(False, 4.5), (True, 4.13)])
def test_a_weight_takes_as_many_bits_as_the_paper_says(nf4: dict, double: bool, bits: float) -> None:
    state = nf4["quantize_nf4"](torch.randn(256, 256), double)
    assert 8 * sum(tensor.nbytes for tensor in state.values()) / 2**16 == pytest.approx(bits, abs=0.003)


@pytest.mark.parametrize("seed", range(4))
def test_an_update_trains_as_well_over_four_bits_and_not_over_any(nf4: dict, seed: int) -> None:
    w = 0.02 * torch.randn(64, 64, generator=torch.Generator().manual_seed(seed))
    coarse = (w / w.std()).round() * w.std()
    base = loss_after_training(w, w)
    assert loss_after_training(w, nf4["dequantize_nf4"](nf4["quantize_nf4"](w, True), (64, 64))) <= 1.02 * base
    assert loss_after_training(w, coarse) > 1.02 * base


def test_a_chain_of_layers_does_not_blow_its_values_up() -> None:
    """The tolerance, for sums in any order, takes them to be of size 1."""
    exercise = exercises.find("08-frozen-nf4")
    for student in range(40):
        *_, chain = hidden_of(exercise.id).cases(random.Random(student))
        y = oracle_of(exercise.id).expect(CaseRun(chain, make_inputs(exercise, chain, student)))["y"]
        assert chain.n_layers > 1 and y.abs().max() < 30


@pytest.mark.slow
def test_a_weight_that_is_kept_stands_out_of_the_watched_budget() -> None:
    exercise = exercises.find("08-frozen-nf4")
    budgets = {budget.name: budget for budget in oracle_of(exercise.id).budgets}
    (case,) = hidden_of(exercise.id).memory_cases(random.Random(0))
    tree = make_inputs(exercise, case, 0)

    def measured(source: str) -> dict:
        answers = gather_answers(exercise, answers_in(exercise.id, source))
        found = observe(exercise, answers, case, tree, wall_s=PATIENCE_S, lend=True)
        assert found.trouble is None
        return found.measured

    right = measured(solution_of(exercise.id))
    wrong = measured(example("wrong", "08-frozen-nf4/saves_the_weight").source)
    run = CaseRun(case, tree)
    assert all(right[name] <= budget.limit(run) for name, budget in budgets.items())
    assert wrong["peak_bytes"] >= budgets["peak_bytes"].limit(run) + 64 * MiB
    assert wrong["saved_bytes"] >= budgets["saved_bytes"].limit(run) + 64 * MiB
