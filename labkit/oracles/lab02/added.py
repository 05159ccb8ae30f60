"""Lab 02: what the usual mistakes make of a sum, bit for bit, so that a hint on one is shown for no other.

The right sums and how close an answer has to come are `sums`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import torch

from labkit.exercises.lab02.sums import Numbers
from labkit.oracles.hints import once
from labkit.spec import CaseRun

Correction = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(running sum before, term, rounded sum of the two) -> what is said to be lost."""


def in_order(x: torch.Tensor) -> torch.Tensor:
    """x[0] + x[1] + ..., each sum rounded to x's dtype; 0 without any element."""
    return reduce(torch.add, x.unbind()) if len(x) else torch.zeros((), dtype=x.dtype)


def by_size(x: torch.Tensor) -> torch.Tensor:
    """x from the smallest magnitude to the largest."""
    return x[x.abs().argsort()]


def from_the_largest(x: torch.Tensor) -> torch.Tensor:
    return in_order(x[x.abs().argsort(descending=True)])


def all_but_one(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The sums in order without the last element, and without the first."""
    return in_order(x[:-1]), in_order(x[1:])


def same(total: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal values; NaN equals NaN."""
    return bool(total == other) or bool(total.isnan() and other.isnan())


def in_another_dtype(case: Numbers, x: torch.Tensor, total: torch.Tensor) -> bool:
    """Of another dtype than x, or what sums in float32 or in float64 give, or more exact than x's dtype allows."""
    if total.dtype != x.dtype:
        return True
    exact = torch.tensor(math.fsum(x.tolist()), dtype=torch.float64).to(x.dtype)
    overflowed = case.kind == "huge" and bool(total.isnan())  # the huge numbers are far inside float64
    return overflowed or same(total, exact) or same(total, in_order(x.double()).to(x.dtype))


def in_order_of_another_dtype(case: Numbers, x: torch.Tensor, total: torch.Tensor) -> bool:
    """Of another dtype than x, or what adding x in order gives in float32 or in float64."""
    wide = (in_order(x.to(dtype)).to(x.dtype) for dtype in (torch.float32, torch.float64) if dtype != x.dtype)
    return total.dtype != x.dtype or any(same(total, other) for other in wide)


def lost(s: torch.Tensor, v: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return (s - t) + v if s.abs() >= v.abs() else (v - t) + s


CORRECTIONS: dict[str, Correction] = {
    "negated": lambda s, v, t: -lost(s, v, t),
    "never swapped": lambda s, v, t: (s - t) + v,
    "swapped the wrong way": lambda s, v, t: (v - t) + s if s.abs() >= v.abs() else (s - t) + v,
    "other brackets": lambda s, v, t: s - (t + v) if s.abs() >= v.abs() else v - (t + s),
    "other brackets in one branch": lambda s, v, t: s - (t + v) if s.abs() >= v.abs() else (v - t) + s,
    "compared by value": lambda s, v, t: (s - t) + v if s >= v else (v - t) + s,
}


@once
def wrong_compensation(run: CaseRun[Numbers], mistake: str) -> tuple[torch.Tensor, ...]:
    """What this mistake makes of x: one of CORRECTIONS, or "kahan" or "again and again"."""
    x = run.tree["x"]
    s = c = torch.zeros((), dtype=x.dtype)
    if mistake == "kahan":
        for v in x:
            y = v - c
            t = s + y
            c = (t - s) - y
            s = t
        return s, s - c
    for v in x:
        t = s + v
        c = c + CORRECTIONS.get(mistake, lost)(s, v, t)
        s = t + c if mistake == "again and again" else t
    return (s, s + c) if mistake == "again and again" else (s + c,)


def compensates(*mistakes: str) -> Callable[[CaseRun[Numbers]], bool]:
    """A diagnosis: neumaier_sum came back as one of these mistakes makes it."""

    def diagnose(run: CaseRun[Numbers]) -> bool:
        total = run.got["sums"]["neumaier_sum"]
        return total.dtype == run.tree["x"].dtype and any(
            same(total, made) for mistake in mistakes for made in wrong_compensation(run, mistake)
        )

    return diagnose
