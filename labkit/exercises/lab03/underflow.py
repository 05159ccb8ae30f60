"""Lab 03: which gradients fp16 rounds to zero, and the loss scale that saves them, from a histogram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise


@dataclass(frozen=True)
class Magnitudes(Case):
    """A bell of log2|gradient| around `center`, `width` wide, cut at `lowest` and `highest`; both ends are counted.

    single_gradient_in_bins: further bins with a single gradient each, far from the bell. empty_bins_at_ends: bins at
    each end that hold none. log2_scales: the scales at which the fraction is asked.
    """

    center: int
    width: float
    lowest: int
    highest: int
    single_gradient_in_bins: tuple[int, ...] = ()
    empty_bins_at_ends: int = 0
    log2_scales: tuple[int, ...] = (0, 8, 16)
    n_gradients: int = 1_000_000


def histogram(case: Magnitudes, gen: torch.Generator) -> dict[str, object]:
    """exponents: int64, ascending; counts[i] gradients g have 2^exponents[i] <= |g| < 2^(exponents[i] + 1)."""
    ends = (case.lowest, case.highest, *case.single_gradient_in_bins)
    exponents = torch.arange(min(ends) - case.empty_bins_at_ends, max(ends) + case.empty_bins_at_ends + 1)
    bell = torch.exp(-0.5 * ((exponents - case.center) / case.width) ** 2)
    counts = (case.n_gradients * bell / bell.sum() * (0.7 + 0.6 * torch.rand(bell.shape, generator=gen))).long()
    counts[(exponents < case.lowest) | (exponents > case.highest)] = 0
    for one in ends:
        counts[exponents == one] += 1
    return {"exponents": exponents, "counts": counts, "scales": [2.0**power for power in case.log2_scales]}


def drive_underflow(ans, case: Magnitudes, tree: dict, stage) -> dict[str, object]:
    """What the two functions return, by their names; the fraction for each of the scales.

    Each call has a copy of the histogram. What it changes there spoils no other call, and is left in the tree.
    """
    histogram = {name: tree[name].clone() for name in ("exponents", "counts")}

    def asked(answer: Callable[..., object], *scale: float) -> object:
        copies = {name: values.clone() for name, values in histogram.items()}
        value = answer(*copies.values(), *scale)
        tree.update((name, copy) for name, copy in copies.items() if not torch.equal(copy, histogram[name]))
        return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value

    return {
        "fraction_to_zero": {
            f"scale 2^{power}": asked(ans.fraction_to_zero, scale)
            for power, scale in zip(case.log2_scales, tree["scales"], strict=True)
        },
        "largest_safe_scale": asked(ans.largest_safe_scale),
    }


UNDERFLOW = Exercise(
    id="03-underflow",
    title="Gradients too small for fp16",
    points=2,
    minutes=10,
    difficulty=1,
    answers=(Answer("fraction_to_zero"), Answer("largest_safe_scale")),
    public=(
        Magnitudes(-23, 3.0, -36, -11, single_gradient_in_bins=(6,)),
        Magnitudes(-24, 5.0, -45, -9),
        Magnitudes(-18, 4.0, -36, -4, empty_bins_at_ends=3, log2_scales=(0, 4, -6)),
        Magnitudes(-6, 3.0, -14, 2, log2_scales=(0, -12, 10)),
        Magnitudes(2, 6.0, -30, 18, log2_scales=(0, -4)),
    ),
    inputs=histogram,
    drive=drive_underflow,
)
