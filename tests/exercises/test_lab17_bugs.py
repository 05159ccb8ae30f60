"""Lab 17's runs with planted bugs: right without one, and each kind leaves the trace by which the grader knows it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grading.hidden.lab17.compose_bugs import COMPOSE_BUGS, planted
from labkit.exercises.lab17.compose_bugs import REPLICAS, Runs, gradients, planned
from labkit.exercises.lab17.composed import Layout, draw, on_ranks, one_process, parts
from labkit.exercises.lab17.planted import KINDS, NONE, SITES, Bug
from labkit.material.lab17_bugs import run_with
from tests.exercises.harness import SECRET

pytestmark = pytest.mark.lab("17")
LAYOUTS = (Layout(4, 2, 2), Layout(2, 3, 2), Layout(3, 2, 3, tied=True), Layout(1, 2, 1), Layout(2, 1, 2))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_ranks_have_the_gradients_of_one_process(layout: Layout) -> None:
    weights, batches = draw(layout, torch.Generator().manual_seed(1))
    wanted = parts(one_process(layout, weights, batches), layout)
    for right, got in zip(wanted, on_ranks(layout, weights, batches), strict=True):
        for name, grad in right.items():
            torch.testing.assert_close(got[name], grad, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, NONE])
def test_each_kind_is_known_by_its_trace_wherever_it_is(kind: str) -> None:
    for case in (Runs(4, 2, 2), Runs(2, 3, 2)):
        if kind == REPLICAS and case.kv_heads == case.tensor:
            continue
        for seed, site in enumerate(SITES.get(kind, (NONE,))):
            run = gradients(case, Bug(kind, site), torch.Generator().manual_seed(seed))
            assert planted(run, case.layout.groups) == (kind, site)


def test_gradients_without_a_trace_are_no_bug_of_the_table() -> None:
    """The control: a gradient of twice its size on one rank."""
    run = gradients(Runs(2, 3, 2), Bug(NONE, NONE), torch.Generator().manual_seed(0))
    assert planted(run, Runs(2, 3, 2).layout.groups) == (NONE, NONE)
    run["ranks"][1]["norm.weight"] *= 2
    with pytest.raises(ValueError, match=r"norm\.weight has none of the traces"):
        planted(run, Runs(2, 3, 2).layout.groups)


def test_hidden_cases_plant_every_kind_and_do_not_say_where() -> None:
    cases = COMPOSE_BUGS.cases(SECRET.draw("17-compose-bugs"))
    assert not any(case.bugs for case in cases)
    for case, missing in zip(cases, ((), (REPLICAS,)), strict=True):
        orders = [planned(case, torch.Generator().manual_seed(seed)) for seed in range(3)]
        for order in orders:
            assert sorted(bug.kind for bug in order) == sorted({*KINDS, NONE} - set(missing))
        assert len({tuple(bug.parameter for bug in order) for order in orders}) == 3


@pytest.mark.slow
def test_only_one_seed_changes_the_first_loss() -> None:
    """The lab's prediction says so."""
    differ = [kind for kind in KINDS if abs(run_with(kind).losses[0] - run_with(kind).losses[1]) > 1e-9]
    assert differ == ["one seed"]


def test_a_clipped_reference_has_the_norm_that_it_is_clipped_to() -> None:
    layout = replace(LAYOUTS[0], clipped=True, tied=True)
    grads = one_process(layout, *draw(layout, torch.Generator().manual_seed(2)))
    counted = [grad.flatten() for name, grad in grads.items() if name != "head.weight"]
    assert torch.cat(counted).norm().item() == pytest.approx(1e-2)
