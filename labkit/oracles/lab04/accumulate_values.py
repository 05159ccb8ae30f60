"""Lab 04: what is true of accumulated gradients, how close others have to be, and how far off they are.

What mistakes make of a case is `accumulate_mistakes`' business, and what is said of them `accumulate_hints`'.
"""

from __future__ import annotations

from typing import Any

from labkit.compare import compare
from labkit.exercises.lab04.accumulate import N_EPOCHS, Accumulation
from labkit.oracles.lab04.accumulate_mistakes import Loop, play
from labkit.spec import CaseRun, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=1e-3)
"""float32 sums over tokens and ranks in another order."""


def right(run: CaseRun[Accumulation]) -> dict[str, Any]:
    return play(run, Loop())


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether every rank has the same gradients and weights."""
    return compare(one, other, CLOSE) is None


def how_far(run: CaseRun[Accumulation]) -> str | None:
    """Where the ranks first leave the right path, and by which factor."""
    want, have = run.expected["ranks"][0]["gradients"], run.got["ranks"][0]["gradients"]
    if len(want) != len(have):
        return f"the optimizer stepped {len(have)} times in {N_EPOCHS} epochs; {len(want)} steps are right"
    for step, (one, other) in enumerate(zip(want, have, strict=True), 1):
        if compare(one, other, CLOSE):
            factor = float(other @ one / (one @ one))
            cosine = float(other @ one / (one.norm() * other.norm()).clamp_min(1e-30))
            return (
                f"at step {step} the gradient is {factor:.3g} times as long in the right direction; cosine {cosine:.4f}"
            )
    return None
