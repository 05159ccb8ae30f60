"""Lab 03: what a student is told whose loss scaler goes wrong: by mistakes that are played whole, and by their traces.

A mistake that differs from another only where that does not show stands behind it.
"""

from __future__ import annotations

import torch

from labkit.exercises.lab03.loss_scaler import SCALE, STATE, UNSCALED, WEIGHTS
from labkit.oracles.lab03.scaler_mistakes import (
    AnyFinite,
    BadEverAfter,
    ChecksBeforeCounting,
    CountsOn,
    DividesOnlyWhenAsked,
    FiniteInHalf,
    FiniteInHalfBeforeDividing,
    FirstAlone,
    FirstUsual,
    ForgetsNoDivision,
    GrowsEarly,
    GrowsEveryTime,
    GrowsLate,
    InfinityAlone,
    LastAlone,
    Multiplies,
    NanAlone,
    NeedsUnscale,
    NeverDivides,
    NeverForgets,
    NeverGrows,
    SkipsEverAfter,
    SkipsEverAfterItsOwn,
    StartsAtOne,
    StopsAtNone,
    UpdatesInStep,
    as_if,
)
from labkit.oracles.lab03.scaler_trace import trace
from labkit.spec import Hint

STILL_SCALED = (
    "The gradients reached the optimizer still scaled: divide them in place (div_), in step unless unscale_ already "
    "has."
)
SKIPS_CLEAN_STEPS = "After one skipped step, clean steps are skipped as well: update must reset what unscale_ found."

HINTS = (
    Hint(
        lambda run: any(isinstance(scale, torch.Tensor) for scale in run.got[SCALE].values()),
        "get_scale() should return a Python float: .item() makes one of a tensor.",
    ),
    Hint(
        trace(lambda t: t.scales[0] != t.case.init_scale),
        "A new scaler does not start at init_scale, which get_scale() should return as a Python float.",
    ),
    Hint(
        trace(lambda t: t.scales_wrongly()),
        "scale(loss) should return loss times the current scale, as a tensor that `backward` can be called on.",
    ),
    Hint(
        trace(lambda t: t.changes_the_loss()),
        "scale(loss) changed the loss itself, which will be logged: return the product as a new tensor.",
    ),
    Hint(
        as_if(NeverDivides),
        STILL_SCALED,
    ),
    Hint(
        as_if(NeedsUnscale),
        "The optimizer does not step although all gradients are finite. Where unscale_ was not called, step "
        "unscales first, and then lets the optimizer step.",
    ),
    Hint(
        as_if(Multiplies),
        "The gradients were multiplied by the scale once more: backward has done that, unscale_ divides.",
    ),
    Hint(
        as_if(NeverForgets, ForgetsNoDivision),
        "What unscale_ noted in one step is still used in the next: update must reset it, because every step "
        "brings new gradients, which are scaled again.",
    ),
    # Later, because the mistake before it differs from this one only where it does not show.
    Hint(as_if(DividesOnlyWhenAsked), STILL_SCALED),
    Hint(
        as_if(FiniteInHalf, FiniteInHalfBeforeDividing),
        "A clean step was skipped: float32 gradients may be larger than 65504 and still be finite. Only infinity "
        "and NaN count.",
    ),
    Hint(
        as_if(NanAlone),
        "NaN is found and infinity is not: isnan misses it. isfinite sees both.",
    ),
    Hint(
        as_if(InfinityAlone),
        "Infinity is found and NaN is not: isinf misses it. isfinite sees both.",
    ),
    Hint(
        as_if(AnyFinite),
        "A gradient with one infinite element was taken for finite: all of its elements must be, isfinite().all().",
    ),
    Hint(
        as_if(StopsAtNone),
        "Once a parameter has no gradient, those after it stay scaled: skip it with `continue`, or leave it out "
        "of the list.",
    ),
    Hint(
        as_if(UpdatesInStep),
        "update runs twice in every step: it is called from outside, so step must not call it.",
    ),
    Hint(
        as_if(FirstAlone, LastAlone, FirstUsual),
        "One bad gradient was seen and another was not: look at the gradients of every parameter, not of one.",
    ),
    Hint(
        trace(
            lambda t: (
                t.scale_change(t.first_wrong_scale) == 1
                and not t.skipped[t.first_wrong_scale]
                and any(t.skipped[: t.first_wrong_scale])
            )
        ),
        "The scale grows too late after a skip: the count begins again at 0, and the next clean step makes it 1.",
    ),
    Hint(
        as_if(GrowsEveryTime),
        "The scale grows after every clean step: count them, and let it grow only when growth_interval of them "
        "have come in a row.",
    ),
    Hint(
        as_if(NeverGrows),
        "The scale never grows: multiply it by growth_factor after growth_interval clean steps in a row.",
    ),
    Hint(
        as_if(CountsOn),
        "The scale grows once and never again: set the count of clean steps back to 0 after growth.",
    ),
    Hint(
        as_if(StartsAtOne),
        "The first growth comes a step too early: a new scaler has counted no clean step yet.",
    ),
    Hint(
        as_if(GrowsLate, GrowsEarly, ChecksBeforeCounting),
        "Growth comes a step too late or too early: it belongs in the update of the clean step that makes the "
        "count reach growth_interval.",
    ),
    Hint(
        trace(lambda t: t.case.n_param_groups > 1 and t.still_scaled(0).any()),
        "Only the parameters of the first group were divided: go through all of optimizer.param_groups.",
    ),
    Hint(
        trace(
            lambda t: (
                t.first in t.case.unscale_in_steps
                and not t.skipped[t.first]
                and torch.isclose(t.got[UNSCALED][f"in step {t.first}"], t.right[UNSCALED][f"in step {t.first}"]).all()
                and t.first_wrong_scale > t.first
            )
        ),
        "The gradients were divided twice: after unscale_, which is called before clipping, step must not divide "
        "again.",
    ),
    Hint(
        trace(
            lambda t: (
                not t.skipped[t.first]
                and t.right_scales[t.first] != t.case.init_scale
                and t.times_too_large(t.first, t.right_scales[t.first] / t.case.init_scale).all()
            )
        ),
        "The gradients were divided by the scale of the start: divide by the current one, as the loss was "
        "multiplied by it.",
    ),
    Hint(as_if(SkipsEverAfter, SkipsEverAfterItsOwn, BadEverAfter), SKIPS_CLEAN_STEPS),
    Hint(
        trace(
            lambda t: (
                t.first > 0
                and not t.skipped[t.first]
                and any(t.skipped[: t.first])
                and not t.moved(t.first)
                and t.first_off(WEIGHTS) == t.first
            )
        ),
        SKIPS_CLEAN_STEPS,
    ),
    Hint(
        trace(
            lambda t: (
                t.skipped[t.first]
                and t.moved(t.first)
                and t.got[WEIGHTS].isfinite().all()
                and t.got[STATE].isfinite().all()
            )
        ),
        "A skipped step changed the optimizer: even with gradients set to zero, momentum moves the weights and "
        "AdamW decays and counts. Do not call optimizer.step() at all.",
    ),
    Hint(
        trace(lambda t: t.skipped[t.first] and t.moved(t.first)),
        "The optimizer stepped with a gradient that is infinite or NaN: look at all of them first (isfinite sees "
        "both), and skip the step.",
    ),
    Hint(
        trace(
            lambda t: (
                t.right_scales[t.first_wrong_scale + 1] < 1
                and t.scales[t.first_wrong_scale + 1] in (0, t.scales[t.first_wrong_scale])
            )
        ),
        "The scale may fall below 1: keep it as a float, without a lower limit.",
    ),
    Hint(
        trace(lambda t: t.fixed_factor(t.first_wrong_scale)),
        "The scale changes by the wrong factor: use growth_factor and backoff_factor.",
    ),
    Hint(
        trace(lambda t: t.skipped[t.first_wrong_scale] and t.scale_change(t.first_wrong_scale) == 1),
        "The scale stays where it is after a skipped step: multiply it by backoff_factor in update.",
    ),
    Hint(
        trace(lambda t: t.skipped[t.first_wrong_scale] and t.scale_change(t.first_wrong_scale) != 1),
        "After a skipped step the scale is multiplied by backoff_factor, and by nothing else.",
    ),
    Hint(
        trace(lambda t: t.scale_change(t.first_wrong_scale) > 1 and any(t.skipped[: t.first_wrong_scale])),
        "The scale grows too early after a skip: a skipped step sets the count of clean steps back to 0.",
    ),
    Hint(
        trace(
            lambda t: (
                t.scale_change(t.first_wrong_scale) > 1
                and any(t.scale_change(step) > 1 for step in range(t.first_wrong_scale))
            )
        ),
        "Having grown once, the scale grows again too early: set the count of clean steps back to 0 after growth.",
    ),
    Hint(
        trace(lambda t: t.scale_change(t.first_wrong_scale) not in (1, t.case.growth_factor, t.case.backoff_factor)),
        "The scale changes by a factor that is neither growth_factor nor backoff_factor.",
    ),
    Hint(
        trace(lambda t: t.only_rare(odd=True)),
        "A parameter that had no gradient in the first step is left out later: go through optimizer.param_groups "
        "in every step.",
    ),
    Hint(
        trace(lambda t: t.only_rare(odd=False)),
        "A parameter without a gradient was changed: leave its p.grad at None, since the optimizer decays and "
        "counts even where the gradient is 0.",
    ),
)
