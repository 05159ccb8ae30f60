"""Lab 04: what is true of estimates of signal and noise: their mean over many windows of a known distribution.

A right estimate need not be ours, only unbiased: its mean has to be within MOST_ERRORS standard errors of that of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab04.noise_scale import Noisy
from labkit.oracles.hints import once
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


Way = Callable[[Tensor, Noisy], Tensor]
"""(gradients, case) -> what a mistake gives for every window."""


def gave(name: str, *ways: Way) -> Callable[[CaseRun[Noisy]], bool]:
    """A diagnosis: one of these gives exactly these signals or noises."""

    def diagnose(run: CaseRun[Noisy]) -> bool:
        wrong = (way(run.tree["gradients"], run.case) for way in ways)
        return any(torch.allclose(run.got[name], one, rtol=1e-5, atol=1e-8) for one in wrong)

    return diagnose


def biased_variance(gradients: Tensor, case: Noisy) -> Tensor:
    return gradients.var(1, correction=0).sum(1) * case.micro_batch


def of_micro_batches(gradients: Tensor, case: Noisy) -> Tensor:
    return gradients.var(1).sum(1)


def of_the_window(gradients: Tensor, case: Noisy) -> Tensor:
    return gradients.var(1).sum(1) * case.micro_batch * case.n_micro


def of_an_element(gradients: Tensor, case: Noisy) -> Tensor:
    return gradients.var(1).mean(1) * case.micro_batch


def squared_mean(gradients: Tensor, case: Noisy) -> Tensor:
    return gradients.mean(1).square().sum(1)


def mean_square(gradients: Tensor, case: Noisy) -> Tensor:
    return gradients.square().sum(2).mean(1)


def square_of_mean_norm(gradients: Tensor, case: Noisy) -> Tensor:
    return gradients.norm(dim=2).mean(1).square()


def clamped(run: CaseRun[Noisy]) -> bool:
    own = estimates(run)[0]
    clamps = (own.clamp_min(0), own.abs())
    return bool((own < 0).any()) and any(torch.allclose(run.got["signals"], one, atol=1e-6) for one in clamps)


def ratio(of: Callable[[Tensor, Tensor], Tensor]) -> Callable[[CaseRun[Noisy]], bool]:
    """A diagnosis: signals and noises are right, and this is the critical batch."""

    def diagnose(run: CaseRun[Noisy]) -> bool:
        signals, noises = (torch.tensor(run.tree[name], dtype=torch.float64) for name in ("signals", "noises"))
        right = not is_biased(run, "signals") and not is_biased(run, "noises")
        return right and math.isclose(run.got["critical"], float(of(signals, noises)), rel_tol=1e-6)

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
    diagnose=(
        Hint(
            lambda run: max(spread(run, "signals"), spread(run, "noises")) > MOST_SPREAD,
            "These estimates scatter so widely that their mean says nothing. Something large and random is added to "
            "them, or they are divided by something near zero.",
        ),
        Hint(
            gave("signals", squared_mean),
            "The signal is biased: the squared length of the mean gradient contains its noise, too. Subtract noise / "
            "(samples of the window).",
        ),
        Hint(
            gave("signals", mean_square, square_of_mean_norm),
            "These are the lengths of the micro-batches' gradients, which contain their whole noise. Start from the "
            "squared length of their mean.",
        ),
        Hint(
            clamped,
            "Negative signals were cut off, which biases the mean. One window's estimate may be negative: average "
            "first.",
        ),
        Hint(
            gave("noises", biased_variance),
            "The variance is divided by the number of micro-batches, which is too small on average: divide by one "
            "less, because the mean comes from the same data.",
        ),
        Hint(
            gave("noises", of_micro_batches),
            "That is the noise of a micro-batch's mean. The noise of one sample is micro_batch times as large.",
        ),
        Hint(
            gave("noises", of_the_window),
            "That is too large by the number of micro-batches: the variance is that of one micro-batch's gradient, not "
            "of the window's.",
        ),
        Hint(gave("noises", of_an_element), "The noise is the sum of the variances of all elements, not their mean."),
        Hint(
            ratio(lambda signals, noises: (noises / signals).mean()),
            "This is the mean of the ratios. A signal near zero makes its ratio huge: divide the mean noise by the "
            "mean signal.",
        ),
        Hint(
            ratio(lambda signals, noises: (noises / signals).median()),
            "This is a median of ratios. Divide the mean noise by the mean signal.",
        ),
        Hint(
            ratio(lambda signals, noises: signals.mean() / noises.mean()),
            "The ratio is upside down: more noise calls for a larger batch.",
        ),
        Hint(
            ratio(lambda signals, noises: noises.mean() / signals.clamp_min(0).mean()),
            "Negative signals were cut off before the mean: keep them, they balance those that are too large.",
        ),
    ),
)
