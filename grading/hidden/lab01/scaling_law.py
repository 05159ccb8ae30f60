"""Lab 01: hidden tables of runs. Their laws are drawn with the inputs, so that no case states them.

The expectation is fitted here, by Gauss-Newton steps on all three numbers: another road than the solution's.
"""

from __future__ import annotations

import math
import random

import torch

from grading.hidden import Hidden
from labkit.exercises.lab01.scaling_law import Runs
from labkit.spec import CaseRun

N_STEPS = 60
STARTS = (0.1, 0.3, 0.8, 1.8)


def gauss_newton(size: torch.Tensor, loss: torch.Tensor, exponent: float) -> tuple[float, list[float]]:
    """The weighted squared error, and (constant, exponent, irreducible), reached from this exponent."""
    # In units of the middle of the table, where constant and exponent hardly pull at each other.
    middle = float(size.log().mean().exp())
    x, weight = size / middle, 1 / loss
    span = float(loss.max() - loss.min())
    law = torch.tensor([span / 2, exponent, float(loss.min()) - span / 10], dtype=torch.float64)
    error, damping = math.inf, 1e-3
    for _ in range(N_STEPS):
        term = x ** -law[1]
        residual = (law[2] + law[0] * term - loss) * weight
        if float(residual.square().sum()) <= error:
            error, best, damping = float(residual.square().sum()), law, damping / 5
            slopes = torch.stack([term, -law[0] * term * x.log(), torch.ones_like(x)], 1) * weight[:, None]
            normal, pull = slopes.T @ slopes, slopes.T @ residual
        else:
            damping *= 10
        law = best - torch.linalg.solve(normal + damping * torch.diag(normal.diag()), pull)
    constant, exponent, irreducible = best.tolist()
    return error, [constant * middle**exponent, exponent, irreducible]


def fitted_law(run: CaseRun[Runs]) -> dict[str, float]:
    """The best law from several starts."""
    _, law = min(gauss_newton(run.tree["size"], run.tree["loss"], start) for start in STARTS)
    return dict(zip(("constant", "exponent", "irreducible"), law, strict=True))


def scaling_cases(rng: random.Random) -> tuple[Runs, ...]:
    """What hides the exponent most comes first: tables that end near the irreducible loss."""
    return (
        Runs(rng.randint(28, 36), 0.0, smallest=10.0 ** rng.uniform(5, 7)),
        Runs(rng.randint(28, 36), 3e-4, smallest=10.0 ** rng.uniform(5, 7)),
        Runs(rng.randint(28, 36), 3e-4, "steep", smallest=float(rng.randint(40, 400))),
        Runs(rng.randint(28, 36), 1e-4, "flat", smallest=10.0 ** rng.uniform(4, 6)),
        Runs(rng.randint(28, 36), 3e-4, "steeper", smallest=float(rng.randint(40, 90))),
        Runs(rng.randint(28, 36), 1e-4, "steepest", smallest=float(rng.randint(60, 120))),
    )


SCALING_LAW = Hidden("01-scaling-law", scaling_cases, expect=fitted_law)
