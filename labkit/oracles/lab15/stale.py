"""Lab 15: what is true of late gradients: a linear recursion, and the largest step at which all its roots decay."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.stale import Late
from labkit.oracles.hints import once
from labkit.oracles.lab15.stale_limits import (
    FOR_LONG_DELAYS,
    NO_SWING_LATER,
    OTHER_ANGLES,
    OTHER_THAN_TWICE_THE_SINE,
    RULES_OF_THUMB,
    largest_root,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

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


def in_words(run: CaseRun[Late]) -> str:
    """The two calls of a case."""
    case = run.case
    return (
        f"stale_sgd(gradient, weights, lr={case.lr}, delay={case.delay}, n_steps={case.n_steps}) with "
        f"{case.n_weights} weights, and largest_stable_lr(curvature={case.curvature:g}, delay={case.delay})"
    )


STALE = Oracle(
    id="15-stale",
    call=in_words,
    judge=(inputs_untouched, right_weights, one_gradient_a_step, right_lr),
    errors={
        "IndexError": "The list of weights is shorter than the delay at first: before step `delay` the gradient is "
        "computed at the first weights.",
    },
    fact=how_the_error_goes,
    axis="larger delays, fewer steps than the delay, and other curvatures",
    diagnose=(
        Hint(
            lambda run: len(run.got["weights"]) == run.case.n_steps + 1,
            "One tensor too many: the first weights come before any step. Return only those after a step.",
        ),
        Hint(
            went_as(lambda run: block_powers(run, 0)),
            "These are the weights of SGD without a delay: each gradient was computed at the newest weights. Compute "
            "it at the weights of `delay` steps ago.",
        ),
        Hint(
            went_as(up_the_hill),
            "The steps go up: a step of SGD is weights - lr * gradient.",
        ),
        Hint(
            went_as(from_old_weights),
            "The step was taken from the old weights. Only the gradient is old: subtract it from the newest weights.",
        ),
        Hint(
            went_as(waits_first),
            "The weights stand still at first. The first gradients are computed at the first weights: step k uses the "
            "weights after step k - delay, or the first ones.",
        ),
        Hint(
            went_as(lambda run: block_powers(run, run.case.delay + 1)),
            "The gradients are one step too old: with delay=0 they are computed at the newest weights.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL if run.case.delay == 0 else went_as(lambda run: block_powers(run, run.case.delay - 1))(run)
            ),
            "The gradients are one step too young: with delay=1 they are computed at the weights before the newest.",
        ),
        Hint(
            lr_times(lambda case: case.curvature**2),
            "The curvature divides: the steeper the valley, the smaller the step.",
        ),
        Hint(
            lr_times(lambda case: case.curvature),
            "This does not depend on the curvature. Only the product of step size and curvature decides.",
        ),
        Hint(
            lr_times(lambda case: 1 / case.curvature),
            "The curvature divides twice. Only the product of step size and curvature decides: divide once.",
        ),
        Hint(
            lr_by_delay(lambda delay: 2.0),
            "That is the limit without a delay, 2 / curvature. A delay makes it smaller.",
        ),
        Hint(
            search_ends_at_1,
            "Only without a delay this is wrong: there the limit is 2 / curvature. If you search for it, begin above.",
        ),
        Hint(
            unless_search_ends(lr_by_delay(lambda delay: 1.0)),
            "This does not depend on the delay. Without one the limit is 2 / curvature, and a delay makes it smaller.",
        ),
        Hint(
            unless_search_ends(lr_times(lambda case: 0.5)),
            "Half of what is stable: the error may change its sign in every turn, as long as it shrinks.",
        ),
        Hint(
            lr_by_delay(lambda delay: delay**delay / (delay + 1) ** (delay + 1)),
            "That is the largest step without any overshoot. The weights may swing around the minimum, as long as the "
            "swings shrink.",
        ),
        *(
            Hint(
                lr_by_delay(limit),
                "That is the largest step without any overshoot, for long delays. The weights may swing around the "
                "minimum, as long as the swings shrink.",
            )
            for limit in NO_SWING_LATER
        ),
        Hint(
            lr_as(lambda run: 2 / (run.case.curvature + run.case.delay)),
            "The curvature was added to the delay. Only the product of step size and curvature decides: divide by it.",
        ),
        Hint(
            lr_as(lambda run: 2 / (1 + run.case.curvature * run.case.delay)),
            "A 1 was added to curvature * delay. Only the product of step size and curvature decides: the curvature "
            "divides everything.",
        ),
        *(Hint(lr_by_delay(limit), text) for limit, text in OTHER_THAN_TWICE_THE_SINE),
        *(
            Hint(
                lr_by_delay(rule),
                "A limit divided by a number of workers or of steps is a rule of thumb. The exact one you can find by "
                "trying, with curvature 1, or from the roots of z^(delay + 1) - z^delay + lr * curvature = 0.",
            )
            for rule in RULES_OF_THUMB
        ),
        *(
            Hint(
                lr_by_delay(limit),
                "That is the limit for long delays, where the angle of a root is so small that it equals its sine. For "
                "any delay take 2 * sin(angle / 2), where angle = pi / (2 * delay + 1).",
            )
            for limit in FOR_LONG_DELAYS
        ),
        *(
            Hint(
                lr_by_delay(lambda delay, angle=angle: 2 * math.sin(angle(delay))),
                "This is twice the sine of another angle. At the limit it is pi / (2 * (2 * delay + 1)), in radians: "
                "look at the brackets.",
            )
            for angle in OTHER_ANGLES
        ),
        Hint(
            nearly_lr,
            "Close, but not within 1 %. If you search by trying: near the limit the weights grow or shrink very "
            "slowly, so take more steps, and more rounds of bisection.",
        ),
    ),
)
