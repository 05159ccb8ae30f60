"""Lab 15: late gradients: the weights after each step and the largest stable step size are judged, a hint a mistake."""

from __future__ import annotations

import math

from labkit.compare import inputs_untouched
from labkit.exercises.lab15.stale import Late
from labkit.oracles.lab15.stale_limits import (
    FOR_LONG_DELAYS,
    NO_SWING_LATER,
    OTHER_ANGLES,
    OTHER_THAN_TWICE_THE_SINE,
    RULES_OF_THUMB,
)
from labkit.oracles.lab15.stale_mistakes import (
    from_old_weights,
    how_the_error_goes,
    lr_as,
    lr_by_delay,
    lr_times,
    nearly_lr,
    search_ends_at_1,
    unless_search_ends,
    up_the_hill,
    waits_first,
    went_as,
)
from labkit.oracles.lab15.stale_values import block_powers, one_gradient_a_step, right_lr, right_weights
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


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
