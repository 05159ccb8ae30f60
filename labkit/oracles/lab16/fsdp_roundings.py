"""Lab 16: how far the masters of two right runs of a sharded model may end apart, by what their arithmetic rounds.

Whether an answer is that close is not judged here.
"""

from __future__ import annotations

from labkit.exercises.lab16.fsdp import Units
from labkit.oracles.hints import once
from labkit.oracles.lab16.fsdp_training import Shards, exact_mean, mean, mean_rounded_up, trained
from labkit.oracles.lab16.one_process import ROUNDING
from labkit.spec import CaseRun, Tolerance

LUCK = 4.0
"""How many times the largest rounding error of one run the distance between two runs may be."""


@once
def bound(run: CaseRun[Units]) -> Tolerance:
    """All steps are taken once more in float64: what the oracle's own masters have lost against these is what norms,
    products, tanh and the optimizer round in the dtypes of the case. A right run has rounded as often, in an order of
    its own. Two more things are free: the order in which gradients are added up over the ranks, in reduce_dtype, where
    every rounding is counted as if it went up; and the last places of a weight, which each step rounds twice.
    """
    right = trained(run, mean)
    lost = _most_apart(right, trained(run, exact_mean, "", True))
    added_up = _most_apart(right, trained(run, mean_rounded_up))
    return Tolerance(atol=LUCK * lost + added_up, rtol=2 * 2 * run.case.n_steps * ROUNDING)


def _most_apart(some: Shards, others: Shards) -> float:
    pairs = (pair for both in zip(some, others, strict=True) for pair in zip(*both, strict=True))
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)
