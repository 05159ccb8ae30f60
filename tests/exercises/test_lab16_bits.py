"""Lab 16: sharded steps end with one process's bits where sums have its order, and within a tight bound elsewhere."""

from __future__ import annotations

import pytest
import torch

from labkit.exercises.lab16.shards import ShardedSteps
from labkit.oracles.lab16.one_process import Played, bound, got_flat, right_rows
from labkit.spec import CaseRun
from tests.exercises.harness import CaseSet, solution_of

pytestmark = pytest.mark.lab("16")


@pytest.fixture(scope="module")
def runs() -> list[CaseRun[ShardedSteps]]:
    """The solution's, on the public cases that are not large."""
    observed = CaseSet("16-zero1").runs(solution_of("16-zero1"))
    return [CaseRun(one.case, one.tree, one.got, one.back) for one in observed if not one.case.is_large]


def apart(rows: list[torch.Tensor], others: list[torch.Tensor], case: ShardedSteps) -> float:
    """The largest distance of two elements, in units of the bound."""
    allowed = bound(case)
    pairs = zip(torch.stack(rows).double(), torch.stack(others).double(), strict=True)
    return max(float(((a - b).abs() / (allowed.atol + allowed.rtol * a.abs())).max()) for a, b in pairs)


def test_with_momentum_the_bits_are_those_of_one_process(runs) -> None:
    """The network adds up in the order of the ranks, and momentum works on every element by itself."""
    with_momentum = [run for run in runs if run.case.optimizer == "momentum"]
    assert len(with_momentum) > 1
    for run in with_momentum:
        assert all(map(torch.equal, right_rows(run), got_flat(run)))


def test_with_adamw_no_rounding_leaves_the_bound(runs) -> None:
    """PyTorch works on the last elements of a row with other instructions, and where a row ends is up to the cut."""
    assert {run.case.optimizer for run in runs} == {"momentum", "adamw"}
    assert all(apart(right_rows(run), got_flat(run), run.case) < 1 for run in runs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_16_bits_leave_it(runs, dtype: torch.dtype) -> None:
    """In all cases but that of three elements, where it takes luck."""
    for run in runs:
        played = Played(run)
        means = [torch.stack(step).to(dtype).float().mean(0) for step in played.grads]
        if run.case.n_elements > 3:
            assert apart(played.right(), played.with_gradients(means), run.case) > 1.5
