"""Lab 01's tables of runs: the law is in them, the reference finds it, and bending tables betray a straight line."""

from __future__ import annotations

import random
from dataclasses import fields

import pytest
import torch

from grading.hidden.lab01.scaling_law import fitted_law, scaling_cases
from labkit.exercises.lab01.scaling_law import SCALING_LAW, Runs, law_of, table_of_runs
from labkit.oracles.lab01.scaling_law import WITHIN, straight_line
from labkit.spec import CaseRun
from tests.exercises.harness import answers_in, solution_of

CASES = [(seed, case) for seed in range(12) for case in scaling_cases(random.Random(seed))]


def made(case: Runs, seed: int) -> tuple:
    """The law behind a table, and the table."""
    law = law_of(case, torch.Generator().manual_seed(seed))
    return law, table_of_runs(case, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("seed", "case"), CASES)
def test_the_reference_and_the_solution_find_the_law(seed: int, case: Runs) -> None:
    law, table = made(case, seed)
    constant, exponent, irreducible = answers_in("01-scaling-law", solution_of("01-scaling-law"))["fit_scaling_law"](
        table["size"], table["loss"]
    )
    reference = fitted_law(CaseRun(case, table))
    assert exponent == pytest.approx(reference["exponent"], rel=1e-3)
    for found in ((constant, exponent, irreducible), reference.values()):
        assert list(found)[1] == pytest.approx(law.exponent, rel=WITHIN / 2)
        assert list(found)[2] == pytest.approx(law.irreducible, rel=WITHIN / 2)


@pytest.mark.parametrize(("seed", "case"), CASES)
def test_a_line_through_the_logarithms_is_far_off(seed: int, case: Runs) -> None:
    law, table = made(case, seed)
    slope, _ = straight_line(table["size"].log(), table["loss"].log())
    assert -slope < law.exponent * (1 - 5 * WITHIN)


def test_no_hidden_case_states_its_law() -> None:
    """A case is known where the student's code runs; the law of a hidden one must not be."""
    for _, case in CASES:
        assert case.law == ()
        assert {item.name for item in fields(case)} == {"n_runs", "noise", "slope", "smallest", "n_decades", "law"}


def test_the_published_exponents_are_found() -> None:
    fit = answers_in("01-scaling-law", solution_of("01-scaling-law"))["fit_scaling_law"]
    found = [fit(*made(case, 0)[1].values())[1] for case in SCALING_LAW.public[:2]]
    assert found == pytest.approx([0.076, 0.34], rel=1e-6)
