"""Lab 15: the weights of SGD with late gradients, and the largest step at which all roots of the recursion decay."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab15.stale import Late
from labkit.oracles.hints import once
from labkit.oracles.lab15.stale_limits import (
    largest_root,
)
from labkit.spec import CaseRun, Tolerance

CLOSE = Tolerance(atol=1e-9, rtol=1e-7)
NEAR = 0.01
"""A stable step size may be found by trying: within one percent."""


def block_powers(run: CaseRun[Late], delay: int) -> list[Tensor]:
    """The weights after each step, from powers of the matrix that takes (newest, ..., oldest) one step on."""
    n, lr = run.case.n_weights, run.case.lr
    one_step = torch.zeros(n * (delay + 1), n * (delay + 1), dtype=torch.float64)
    one_step[n:, :-n] = torch.eye(n * delay, dtype=torch.float64) if delay else 0
    one_step[:n, :n] = torch.eye(n, dtype=torch.float64)
    one_step[:n, -n:] -= lr * run.tree["curvatures"]
    start = (run.tree["weights"] - run.tree["minimum"]).repeat(delay + 1)
    powers = (torch.linalg.matrix_power(one_step, step) for step in range(1, run.case.n_steps + 1))
    return [run.tree["minimum"] + (power @ start)[:n] for power in powers]


@once
def late_weights(run: CaseRun[Late]) -> list[Tensor]:
    return block_powers(run, run.case.delay)


@once
def stable_lr(run: CaseRun[Late]) -> float:
    """Where the largest root leaves the unit circle, by bisection."""
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        if largest_root(run.case.delay, middle) < 1:
            low = middle
        else:
            high = middle
    return low / run.case.curvature


def right_weights(run: CaseRun[Late]) -> str | None:
    """The weights after each step."""
    wanted, got = late_weights(run), run.got["weights"]
    if len(got) != len(wanted):
        return f"stale_sgd returned {len(got)} tensors for n_steps={run.case.n_steps}: give the weights after each step"
    for step, (one, other) in enumerate(zip(wanted, got, strict=True), 1):
        if compare(one, other, CLOSE):
            return f"wrong weights after step {step}: expected {one.tolist()}, got {_told(other)}"
    return None


def one_gradient_a_step(run: CaseRun[Late]) -> str | None:
    """The gradient of a step is computed once."""
    n_asked = len(run.got["asked"])
    if n_asked > run.case.n_steps:
        return f"gradient was called {n_asked} times in {run.case.n_steps} steps"
    return None


def right_lr(run: CaseRun[Late]) -> str | None:
    """The largest stable step size, within a percent."""
    wanted, got = stable_lr(run), run.got["lr"]
    if not abs(got - wanted) <= NEAR * wanted:
        case = run.case
        return f"largest_stable_lr({case.curvature:g}, {case.delay}) is {wanted:.4g} (within 1 %), and not {got:.4g}"
    return None


def _told(value: object) -> object:
    return value.tolist() if isinstance(value, Tensor) else value
