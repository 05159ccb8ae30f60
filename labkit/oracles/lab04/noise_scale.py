"""Lab 04: what is true of estimates of signal and noise: their mean over many windows of a known distribution.

A right estimate need not be ours, only unbiased: its mean has to be within MOST_ERRORS standard errors of that of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab04.noise_scale import Noisy
from labkit.oracles.hints import once
from labkit.oracles.lab04 import noise_mistakes as mistakes
from labkit.spec import CaseRun, Hint, Observation, Oracle

MOST_ERRORS = 5.0
MOST_SPREAD = 10.0
"""How many times as widely as ours an estimate may scatter; the first micro-batch against the window: 2 to 4 times."""


@once
def estimates(run: CaseRun[Noisy]) -> tuple[Tensor, Tensor]:
    """Our own signals and noises: the variance over micro-batches is the noise of one."""
    gradients, case = run.tree["gradients"], run.case
    of_micro_batch = gradients.var(1).sum(1)
    return gradients.mean(1).square().sum(1) - of_micro_batch / case.n_micro, of_micro_batch * case.micro_batch


def truth(case: Noisy) -> tuple[float, float]:
    return case.length**2, case.trace


def critical(run: CaseRun[Noisy]) -> float:
    return sum(run.tree["noises"]) / sum(run.tree["signals"])


def is_biased(run: CaseRun[Noisy], name: str) -> str | None:
    place = ("signals", "noises").index(name)
    found, own, true = run.got[name], estimates(run)[place], truth(run.case)[place]
    error = max(float(own.std()), float(found.std())) / math.sqrt(len(own))
    # From our own mean and not from the truth: what is unlucky about the draws is so for every answer.
    off = (float(found.mean()) - float(own.mean())) / error
    if abs(off) <= MOST_ERRORS:
        return None
    return (
        f"the mean of {len(own)} {name} is {float(found.mean()):.4g}, {abs(off):.0f} standard errors from that of "
        f"unbiased ones; the truth is {true:.4g}"
    )


def spread(run: CaseRun[Noisy], name: str) -> float:
    """How many times as widely as our own estimates these scatter."""
    own = estimates(run)[("signals", "noises").index(name)]
    return float(run.got[name].std()) / float(own.std())


def problem(run: CaseRun[Noisy]) -> str | None:
    """The first of the three that is wrong."""
    for name in ("signals", "noises"):
        if not run.got[name].isfinite().all():
            return f"some {name} are not finite"
        if spread(run, name) > MOST_SPREAD:
            return f"the {name} scatter {spread(run, name):.3g} times as widely as they have to"
        if found := is_biased(run, name):
            return found
    if not math.isclose(run.got["critical"], critical(run), rel_tol=1e-6):
        return f"critical_batch gave {run.got['critical']:.6g} for pairs that suggest {critical(run):.6g}"
    return None


def gave(name: str, ways: Sequence[mistakes.Way]) -> Callable[[CaseRun[Noisy]], bool]:
    """A diagnosis: one of these gives exactly these signals or noises, and they are wrong."""

    def diagnose(run: CaseRun[Noisy]) -> bool:
        windows = mistakes.Windows(run.tree["gradients"], run.case)
        return any(same(run.got[name], way(windows)) for way in ways)

    return diagnose


def same(found: Tensor, wanted: Tensor) -> bool:
    return torch.allclose(found, wanted, rtol=1e-5, atol=1e-8)


def clamped(run: CaseRun[Noisy]) -> bool:
    own = estimates(run)[0]
    clamps = (own.clamp_min(0), own.abs())
    return bool((own < 0).any()) and any(torch.allclose(run.got["signals"], one, atol=1e-6) for one in clamps)


def returned_the_other_way_round(run: CaseRun[Noisy]) -> bool:
    signals, noises = estimates(run)
    return same(run.got["signals"], noises) and same(run.got["noises"], signals)


def ratio(of: Callable[[Sequence[float], Sequence[float]], float | tuple]) -> Callable[[CaseRun[Noisy]], bool]:
    """A diagnosis: signals and noises are right, and this (or one of these) is the critical batch."""

    def diagnose(run: CaseRun[Noisy]) -> bool:
        if is_biased(run, "signals") or is_biased(run, "noises"):
            return False
        wrong = of(run.tree["signals"], run.tree["noises"])
        ways = wrong if isinstance(wrong, tuple) else (wrong,)
        return any(math.isclose(run.got["critical"], one, rel_tol=1e-6) for one in ways)

    return diagnose


def called(run: Observation) -> str:
    case = run.case
    return (
        f"noise_scale(<float64 of shape ({case.n_micro}, {case.n_dims})>, micro_batch={case.micro_batch}) on "
        f"{case.n_draws} windows"
    )


NOISE_SCALE = Oracle(
    id="04-noise-scale",
    judge=(problem, inputs_untouched),
    call=called,
    axis="numbers of micro-batches and samples, and other ratios of noise to signal",
    unusable={
        "object is not subscriptable": "noise_scale returns two numbers, first the signal and then the noise.",
    },
    diagnose=(
        Hint(
            returned_the_other_way_round,
            "The two numbers are exchanged: return the signal first, then the noise.",
        ),
        Hint(
            gave("signals", mistakes.EXCHANGED_SIZES),
            "The two batch sizes are exchanged: the squared lengths of the micro-batches' gradients belong to "
            "micro_batch samples, that of their mean to k times as many.",
        ),
        Hint(
            gave("signals", mistakes.LENGTHS_NOT_SQUARED),
            "A length was not squared: the two equations are about squared lengths.",
        ),
        Hint(
            gave("signals", mistakes.SQUARED_MEAN_LENGTH),
            "The lengths were averaged before they were squared, which gives too little. Square the length of each "
            "micro-batch's gradient, then average.",
        ),
        Hint(
            gave("signals", mistakes.SUM_FOR_THE_WINDOW),
            "The window's gradient is the mean of its micro-batches' gradients, not their sum.",
        ),
        Hint(
            gave("noises", mistakes.FROM_ONE_SIZE),
            "This noise comes from one batch size alone, so it contains the signal too. Compare two batch sizes, or "
            "take the variance over the micro-batches.",
        ),
        Hint(
            gave("signals", mistakes.NOISE_LEFT_IN),
            "The signal is biased: the squared length of the mean gradient contains its noise, too. Subtract noise / "
            "(samples of the window).",
        ),
        Hint(
            gave("noises", mistakes.MULTIPLIED_BY_THE_DIFFERENCE),
            "The squared lengths differ by noise / b - noise / (k · b). Divide the difference by 1 / b - 1 / (k · b).",
        ),
        Hint(
            gave("noises", mistakes.DIVIDED_BY_THE_SAMPLES),
            "The noise of one sample is micro_batch times that of a micro-batch's mean: multiply, do not divide.",
        ),
        Hint(
            gave("signals", mistakes.NOISE_ADDED),
            "The noise was added. The squared length of the mean gradient contains it: subtract it.",
        ),
        Hint(
            gave("signals", mistakes.LENGTHS_OF_MICRO_BATCHES),
            "These are the lengths of the micro-batches' gradients, which contain their whole noise. Start from the "
            "squared length of their mean.",
        ),
        Hint(
            gave("signals", mistakes.FIRST_ALONE),
            "This is the length of the first micro-batch's gradient. The window's gradient is the mean of all k.",
        ),
        Hint(
            gave("signals", mistakes.OTHER_AXIS),
            "The mean or the variance goes over the elements of a gradient, or over everything. Both go over the "
            "micro-batches, which are axis 0.",
        ),
        Hint(
            gave("signals", mistakes.TOO_LITTLE_NOISE_TAKEN),
            "The variance over the micro-batches is the noise of one micro-batch already. Their mean contains 1 / k of "
            "that, whatever micro_batch is.",
        ),
        Hint(
            gave("signals", mistakes.TOO_MUCH_NOISE_TAKEN),
            "Too much noise was subtracted. A gradient of B samples contains noise / B: with the noise of one sample, "
            "that is noise / (k · micro_batch) in the window's.",
        ),
        Hint(
            clamped,
            "Negative signals were cut off, which biases the mean. One window's estimate may be negative: average "
            "first.",
        ),
        Hint(
            gave("noises", mistakes.BIASED_VARIANCE),
            "The variance is divided by the number of micro-batches, which is too small on average: divide by one "
            "less, because the mean comes from the same data.",
        ),
        Hint(
            gave("noises", mistakes.OF_A_MICRO_BATCH),
            "That is the noise of a micro-batch's mean. The noise of one sample is micro_batch times as large.",
        ),
        Hint(
            gave("noises", mistakes.OF_THE_WINDOW),
            "That is too large by the number of micro-batches: the variance is that of one micro-batch's gradient, not "
            "of the window's.",
        ),
        Hint(
            gave("noises", mistakes.OF_AN_ELEMENT),
            "The noise is the sum of the variances of all elements, not their mean.",
        ),
        Hint(
            gave("noises", mistakes.WRONG_SIGN),
            "The noise has the wrong sign. The squared length is larger at the smaller batch: subtract in the same "
            "order above and below the line.",
        ),
        Hint(
            gave("noises", mistakes.STANDARD_DEVIATIONS),
            "Standard deviations were added up. The noise is the sum of the variances, their squares.",
        ),
        Hint(
            ratio(mistakes.mean_of_ratios),
            "This is the mean of the ratios. A signal near zero makes its ratio huge: divide the mean noise by the "
            "mean signal.",
        ),
        Hint(
            ratio(mistakes.medians),
            "A median was taken, which is not an unbiased estimate. Divide the mean noise by the mean signal.",
        ),
        Hint(
            ratio(lambda signals, noises: sum(signals) / sum(noises)),
            "The ratio is upside down: more noise calls for a larger batch.",
        ),
        Hint(
            ratio(mistakes.without_negative_ones),
            "Negative signals were changed or left out: keep them, they balance those that are too large.",
        ),
        Hint(
            ratio(lambda signals, noises: tuple(one(sum(noises) / sum(signals)) for one in (math.floor, math.ceil))),
            "The critical batch was rounded. Return it as it comes out, a float.",
        ),
        Hint(
            ratio(lambda signals, noises: math.sqrt(sum(noises) / sum(signals))),
            "The critical batch is the ratio itself, without a root: signal and noise are squares both.",
        ),
        Hint(
            ratio(
                lambda signals, noises: tuple(
                    sum(noises) / sum(signals) * factor for factor in (len(signals), 1 / len(signals))
                )
            ),
            "The mean of one was divided by the sum of the other. Divide the mean noise by the mean signal.",
        ),
        Hint(
            lambda run: max(spread(run, "signals"), spread(run, "noises")) > MOST_SPREAD,
            "These estimates scatter so widely that their mean says nothing. Something large and random is added to "
            "them, or they are divided by something near zero.",
        ),
    ),
)
