"""Lab 04: what the usual mistakes make of signal, noise and their ratio, for every window at once. No hint stands here.

Of a case with n_micro micro-batches of micro_batch samples: `small` and `large` are the two batch sizes, `of_small` and
`of_large` the mean squared lengths of gradients at each.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from labkit.exercises.lab04.noise_scale import Noisy


@dataclass(frozen=True)
class Windows:
    """gradients: (windows, micro-batches, elements). The properties have one number for each window."""

    gradients: Tensor
    case: Noisy

    @property
    def small(self) -> int:
        return self.case.micro_batch

    @property
    def large(self) -> int:
        return self.case.micro_batch * self.case.n_micro

    @property
    def of_small(self) -> Tensor:
        return self.gradients.square().sum(2).mean(1)

    @property
    def of_large(self) -> Tensor:
        return self.gradients.mean(1).square().sum(1)

    @property
    def squared_mean_length(self) -> Tensor:
        return self.gradients.norm(dim=2).mean(1).square()

    @property
    def variance(self) -> Tensor:
        """Of a micro-batch's gradient, summed over its elements."""
        return self.gradients.var(1).sum(1)

    def signal(self, of_small: Tensor, of_large: Tensor) -> Tensor:
        """By the two equations, from these squared lengths."""
        return (self.large * of_large - self.small * of_small) / (self.large - self.small)

    def noise(self, of_small: Tensor, of_large: Tensor) -> Tensor:
        return (of_small - of_large) / (1 / self.small - 1 / self.large)


Way = Callable[[Windows], Tensor]
"""What a mistake gives for every window."""
Ratio = Callable[[Sequence[float], Sequence[float]], float]
"""(signals, noises) -> what a mistake makes of the critical batch."""

EXCHANGED_SIZES: tuple[Way, ...] = (lambda w: w.signal(w.of_large, w.of_small),)
LENGTHS_NOT_SQUARED: tuple[Way, ...] = (
    lambda w: w.signal(w.gradients.norm(dim=2).mean(1), w.of_large.sqrt()),
    lambda w: w.signal(w.of_small.sqrt(), w.of_large.sqrt()),
    lambda w: w.of_large.sqrt() - w.variance / w.case.n_micro,
)
SQUARED_MEAN_LENGTH: tuple[Way, ...] = (lambda w: w.signal(w.squared_mean_length, w.of_large),)
SUM_FOR_THE_WINDOW: tuple[Way, ...] = (
    lambda w: w.signal(w.of_small, w.of_large * w.case.n_micro**2),
    lambda w: w.of_large * w.case.n_micro**2 - w.variance / w.case.n_micro,
)
NOISE_LEFT_IN: tuple[Way, ...] = (lambda w: w.of_large,)
NOISE_ADDED: tuple[Way, ...] = (lambda w: w.of_large + w.variance / w.case.n_micro,)
LENGTHS_OF_MICRO_BATCHES: tuple[Way, ...] = (
    lambda w: w.of_small,
    lambda w: w.squared_mean_length,
    lambda w: w.of_small - w.variance / w.case.n_micro,
)
TOO_MUCH_NOISE_TAKEN: tuple[Way, ...] = (
    lambda w: w.of_large - w.variance,
    lambda w: w.of_large - w.variance * w.small,
    lambda w: w.of_large - w.variance * w.small / w.case.n_micro,
    lambda w: w.of_small - w.variance * w.small,
)

OTHER_AXIS: tuple[Way, ...] = (
    lambda w: w.gradients.mean(2).square().sum(1) - w.variance / w.case.n_micro,
    lambda w: w.of_large - w.gradients.var(2).sum(1) / w.case.n_micro,
    lambda w: w.gradients.mean(2).square().sum(1) - w.gradients.var(2).sum(1) / w.case.n_micro,
    lambda w: w.of_large - w.gradients.flatten(1).var(1) / w.case.n_micro,
)
FIRST_ALONE: tuple[Way, ...] = (
    lambda w: w.gradients[:, 0].square().sum(1),
    lambda w: w.gradients[:, 0].square().sum(1) - w.variance / w.case.n_micro,
)
TOO_LITTLE_NOISE_TAKEN: tuple[Way, ...] = (
    lambda w: w.of_large - w.variance / w.small,
    lambda w: w.of_large - w.variance / w.large,
)

FROM_ONE_SIZE: tuple[Way, ...] = (lambda w: w.small * w.of_small, lambda w: w.large * w.of_large)
BIASED_VARIANCE: tuple[Way, ...] = (lambda w: w.gradients.var(1, correction=0).sum(1) * w.small,)
OF_A_MICRO_BATCH: tuple[Way, ...] = (lambda w: w.variance,)
DIVIDED_BY_THE_SAMPLES: tuple[Way, ...] = (lambda w: w.variance / w.small,)
MULTIPLIED_BY_THE_DIFFERENCE: tuple[Way, ...] = (
    lambda w: (w.of_small - w.of_large) * (1 / w.small - 1 / w.large),
    lambda w: (w.of_small - w.of_large) * (w.large - w.small),
)
OF_THE_WINDOW: tuple[Way, ...] = (lambda w: w.variance * w.large,)
OF_AN_ELEMENT: tuple[Way, ...] = (lambda w: w.gradients.var(1).mean(1) * w.small,)
WRONG_SIGN: tuple[Way, ...] = (lambda w: -w.variance * w.small,)
STANDARD_DEVIATIONS: tuple[Way, ...] = (
    lambda w: w.gradients.std(1).sum(1) * w.small,
    lambda w: w.gradients.std(1).sum(1) * w.small**0.5,
)


def mean_of_ratios(signals: Sequence[float], noises: Sequence[float]) -> float:
    return statistics.fmean(noise / signal for signal, noise in zip(signals, noises, strict=True))


def medians(signals: Sequence[float], noises: Sequence[float]) -> tuple[float, ...]:
    """A median of ratios, or a ratio of medians: of an even number, the lower one (as torch has it) or the mean."""
    ratios = [noise / signal for signal, noise in zip(signals, noises, strict=True)]
    kinds = statistics.median, statistics.median_low
    return (
        *(kind(ratios) for kind in kinds),
        *(kind(noises) / kind(signals) for kind in kinds),
        *(statistics.fmean(noises) / kind(signals) for kind in (*kinds, statistics.median_high)),
    )


def without_negative_ones(signals: Sequence[float], noises: Sequence[float]) -> tuple[float, ...]:
    """Negative signals as 0, left out with or without their noise, or with their sign dropped."""
    kept = [(signal, noise) for signal, noise in zip(signals, noises, strict=True) if signal > 0]
    positive = sum(signal for signal, _ in kept)
    return (
        sum(noises) / positive,
        sum(noise for _, noise in kept) / positive,
        statistics.fmean(noises) / (positive / len(kept)),
        sum(noises) / sum(abs(signal) for signal in signals),
    )
