"""Lab 15: what the usual mistakes with late gradients look like, in the weights and in the step size."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab15.stale import Late
from labkit.oracles.lab15.stale_limits import (
    largest_root,
)
from labkit.oracles.lab15.stale_values import CLOSE, NEAR, late_weights, right_lr, right_weights, stable_lr
from labkit.spec import CANNOT_TELL, CaseRun


def went_as(weights: Callable[[CaseRun[Late]], list[Tensor]]) -> Callable[[CaseRun[Late]], object]:
    """A diagnosis: the weights are those of this mistake. CANNOT_TELL where they are the right ones."""

    def when(run: CaseRun[Late]) -> object:
        wrong = weights(run)
        if compare(late_weights(run), wrong, CLOSE) is None:
            return CANNOT_TELL if right_weights(run) is None else False
        return compare(wrong, list(run.got["weights"]), CLOSE) is None

    return when


def from_old_weights(run: CaseRun[Late]) -> list[Tensor]:
    """The step goes from where the gradient was computed."""
    kept = [run.tree["weights"]]
    for _ in range(run.case.n_steps):
        old = kept[max(len(kept) - 1 - run.case.delay, 0)]
        kept.append(old - run.case.lr * run.tree["curvatures"] @ (old - run.tree["minimum"]))
    return kept[1:]


def up_the_hill(run: CaseRun[Late]) -> list[Tensor]:
    """Each step adds the gradient."""
    kept = [run.tree["weights"]]
    for _ in range(run.case.n_steps):
        old = kept[max(len(kept) - 1 - run.case.delay, 0)]
        kept.append(kept[-1] + run.case.lr * run.tree["curvatures"] @ (old - run.tree["minimum"]))
    return kept[1:]


def waits_first(run: CaseRun[Late]) -> list[Tensor]:
    """No step before the first gradient has come."""
    still = [run.tree["weights"]] * min(run.case.delay, run.case.n_steps)
    return still + late_weights(run)[: run.case.n_steps - len(still)]


def lr_as(formula: Callable[[CaseRun[Late]], float]) -> Callable[[CaseRun[Late]], object]:
    """A diagnosis: the step size is this one, and the weights are right. CANNOT_TELL where it is the right one."""

    def when(run: CaseRun[Late]) -> object:
        wrong, right = formula(run), stable_lr(run)
        # 0 up to rounding is 0: a sine of a multiple of pi.
        if right_weights(run) or abs(run.got["lr"] - wrong) > NEAR * abs(wrong) + 1e-9:
            return False
        return CANNOT_TELL if abs(wrong - right) <= 2 * NEAR * right else True

    return when


def lr_times(factor: Callable[[Late], float]) -> Callable[[CaseRun[Late]], object]:
    """The step size is this many times the right one."""
    return lr_as(lambda run: factor(run.case) * stable_lr(run))


def lr_by_delay(formula: Callable[[int], float]) -> Callable[[CaseRun[Late]], object]:
    """The step size is this number, which depends on the delay alone, divided by the curvature."""
    return lr_as(lambda run: formula(run.case.delay) / run.case.curvature)


def search_ends_at_1(run: CaseRun[Late]) -> bool:
    """Only without a delay the limit is above 1, in units of the curvature."""
    return run.case.delay == 0 and right_weights(run) is None and abs(run.got["lr"] * run.case.curvature - 1) < NEAR


def unless_search_ends(when: Callable[[CaseRun[Late]], object]) -> Callable[[CaseRun[Late]], object]:
    """The same, but one failing case without a delay does not tell it from a search that ends at 1."""
    return lambda run: CANNOT_TELL if search_ends_at_1(run) else when(run)


def how_the_error_goes(run: CaseRun[Late]) -> str | None:
    """What such a step size does to the error in the long run."""
    if right_weights(run) or right_lr(run) is None or not math.isfinite(run.got["lr"]):
        return None
    if run.got["lr"] <= 0:
        return "a step size of 0 or less does not lead to the minimum"
    root = largest_root(run.case.delay, run.got["lr"] * run.case.curvature)
    if root < 1:
        return (
            f"with this step size each step leaves {root:.1%} of the error in the long run, so larger ones are stable"
        )
    return f"with this step size each step makes the error {root:.3f} times as large in the long run"


def nearly_lr(run: CaseRun[Late]) -> bool:
    """The step size is off by more than what is allowed, and by little."""
    return right_weights(run) is None and NEAR < abs(run.got["lr"] / stable_lr(run) - 1) < 0.1
