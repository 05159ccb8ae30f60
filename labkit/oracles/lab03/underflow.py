"""Lab 03: what becomes of a histogram of gradients in float16, by PyTorch's own cast, and the usual mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab03.underflow import Magnitudes
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

NEAR = 1e-6
"""How far a fraction may be off: what a division in float32 may cost, and one gradient in a million."""


def cast(exponents: torch.Tensor, scale: float, place: float) -> torch.Tensor:
    """One value of each bin, `place` (1 to 2) times its lower end, scaled and rounded to float16."""
    return (place * 2.0 ** exponents.double() * scale).to(torch.float16)


def to_zero(tree: dict, scale: float) -> float:
    """The fraction of the gradients that the cast turns into 0; in the middle of a bin, as almost all of them are."""
    zero = cast(tree["exponents"], scale, 1.5) == 0
    return float(tree["counts"][zero].sum() / tree["counts"].sum())


def overflows(tree: dict, scale: float) -> bool:
    """Whether the upper end of a bin that holds gradients is infinite in float16."""
    top = 2 - 2.0**-23  # the last float32 below the next power of two
    return bool(cast(tree["exponents"][tree["counts"] > 0], scale, top).isinf().any())


def safe_scale(tree: dict) -> float:
    return next(2.0**power for power in range(60, -60, -1) if not overflows(tree, 2.0**power))


def true_underflow(run: CaseRun[Magnitudes]) -> dict[str, object]:
    fractions = {
        f"scale 2^{power}": to_zero(run.tree, scale)
        for power, scale in zip(run.case.log2_scales, run.tree["scales"], strict=True)
    }
    return {"fraction_to_zero": fractions, "largest_safe_scale": safe_scale(run.tree)}


def fractions_are(of: Callable[[dict, float], float]) -> Callable[[CaseRun[Magnitudes]], object]:
    """A diagnosis: every fraction is what `of(tree, scale)` makes of the histogram, and one of them is wrong."""

    def same(run: CaseRun[Magnitudes]) -> object:
        tree = run.tree
        found, right = list(run.got["fraction_to_zero"].values()), [to_zero(tree, scale) for scale in tree["scales"]]
        scaled = zip(found, tree["scales"], strict=True)
        wrong = [not math.isclose(a, b, abs_tol=NEAR) for a, b in zip(found, right, strict=True)]
        close = [math.isclose(value, of(tree, scale), rel_tol=NEAR, abs_tol=NEAR) for value, scale in scaled]
        # Where the mistake makes no difference, the other function is the one that failed.
        return all(close) and (any(wrong) or CANNOT_TELL)

    return same


def below(power: int) -> Callable[[dict, float], float]:
    """The fraction below 2^power after scaling."""
    return lambda tree, scale: share(tree, tree["exponents"] + math.log2(scale) < power)


def share(tree: dict, where: torch.Tensor) -> float:
    return float(tree["counts"][where].sum() / tree["counts"].sum())


def of_bins(tree: dict, scale: float) -> float:
    return float((cast(tree["exponents"], scale, 1.5) == 0).double().mean())


def of_filled_bins(tree: dict, scale: float) -> float:
    return float((cast(tree["exponents"], scale, 1.5) == 0)[tree["counts"] > 0].double().mean())


def kept(tree: dict, scale: float) -> float:
    return 1 - to_zero(tree, scale)


def by_another_logarithm(log: Callable[[float], float]) -> Callable[[dict, float], float]:
    return lambda tree, scale: share(tree, tree["exponents"] + log(scale) < -25)


def never_to_the_left(tree: dict, scale: float) -> float:
    return to_zero(tree, max(1.0, scale))


def always_to_the_right(tree: dict, scale: float) -> float:
    return to_zero(tree, max(scale, 1 / scale))


def either_end(tree: dict, scale: float) -> float:
    value = cast(tree["exponents"], scale, 1.5)
    return share(tree, (value == 0) | value.isinf())


def scale_is(of: Callable[[dict], float]) -> Callable[[CaseRun[Magnitudes]], bool]:
    """A diagnosis: the chosen scale is `of(tree)`, which is not the right one."""
    return lambda run: run.got["largest_safe_scale"] == of(run.tree) != safe_scale(run.tree)


def last_bin(tree: dict) -> float:
    """The safe scale of a histogram whose empty bins held gradients as well."""
    return 2.0 ** (14 - int(tree["exponents"].max()))


def saves_the_smallest(target: int, empty_too: bool, least: float) -> Callable[[dict], float]:
    """The scale that moves the lowest bin to `target`, and is no smaller than `least`.

    empty_too: of all bins, and not of those that hold gradients.
    """

    def scale(tree: dict) -> float:
        bins = tree["exponents"] if empty_too else tree["exponents"][tree["counts"] > 0]
        return max(least, 2.0 ** (target - int(bins.min())))

    return scale


def passes_over_few(run: CaseRun[Magnitudes]) -> bool:
    """Whether the chosen scale is safe for all gradients but a hundredth of them or less."""
    exponents, counts = run.tree["exponents"], run.tree["counts"]
    last = 14 - math.log2(run.got["largest_safe_scale"])
    return 0 < share(run.tree, exponents > last) <= 0.01 and bool((counts[exponents == last] > 0).any())


def in_words(run: Observation) -> str:
    """ "exponents from -36 to 6, 1,000,000 gradients in counts, scale = 2^0, 2^8" """
    exponents, counts = run.tree["exponents"], run.tree["counts"]
    used = exponents[counts > 0]
    scales = ", ".join(f"2^{power}" for power in run.case.log2_scales)
    return (
        f"exponents from {int(exponents[0])} to {int(exponents[-1])}, {int(counts.sum()):,} gradients, the smallest in "
        f"bin {int(used[0])} and the largest in bin {int(used[-1])}; scale = {scales}"
    )


A_SCALE_BELOW_1 = "A scale below 1 moves the bins to the left, since log2(scale) is negative, and more is lost."
TOO_LARGE = (
    "With this scale the largest gradients become infinite: the largest bin in use must move no higher than "
    "[2^14, 2^15)."
)
FROM_THE_SMALLEST = (
    "This scale follows from the smallest gradient. The largest gradient decides what is safe, because it is the first "
    "to become infinite."
)
BARELY_KEPT = (-25, -24, -23, -14)
"""Bins to which somebody may want to move the smallest gradient: where it is not lost, or not subnormal."""

UNDERFLOW = Oracle(
    id="03-underflow",
    expect=true_underflow,
    tolerance=lambda run: {"fraction_to_zero": Tolerance(atol=NEAR)},
    judge=(inputs_untouched,),
    call=in_words,
    places={f"fraction_to_zero.scale 2^{power}": f"fraction_to_zero with scale 2^{power}" for power in range(-64, 65)},
    diagnose=(
        *(
            Hint(
                fractions_are(below(power)),
                "Subnormal numbers are not lost: below 2^-14 they have fewer bits, and only below half of the smallest "
                "one, 2^-24, is a value rounded to zero.",
            )
            for power in (-14, -13)
        ),
        Hint(
            fractions_are(below(-24)),
            "One bin too many is lost: 2^-24 is the smallest subnormal, and what is above half of it rounds up to it.",
        ),
        Hint(
            fractions_are(below(-26)),
            "One bin too few is lost: the bin -26 ends at 2^-25, half of the smallest subnormal, and everything below "
            "it rounds to zero.",
        ),
        Hint(
            fractions_are(lambda tree, scale: 100 * to_zero(tree, scale)),
            "These are percentages: a fraction lies between 0 and 1.",
        ),
        Hint(
            fractions_are(lambda tree, scale: to_zero(tree, scale) * int(tree["counts"].sum()) / len(tree["counts"])),
            "A fraction lies between 0 and 1: divide by the number of gradients, counts.sum(), not of bins.",
        ),
        Hint(
            fractions_are(lambda tree, scale: to_zero(tree, scale) * int(tree["counts"].sum())),
            "A fraction lies between 0 and 1: divide the gradients that are lost by all of them, counts.sum().",
        ),
        Hint(
            fractions_are(lambda tree, scale: math.floor(to_zero(tree, scale))),
            "A whole number came back: // rounds down, and of two counts / makes the fraction.",
        ),
        Hint(
            fractions_are(lambda tree, scale: to_zero(tree, 1 / scale)),
            "The scale goes the wrong way: gradients are multiplied by it before they are rounded to fp16.",
        ),
        Hint(
            fractions_are(lambda tree, scale: to_zero(tree, 1.0)),
            "The scale does not change the fraction: 2^k times 2^s is 2^(k + s), so every bin moves by log2(scale).",
        ),
        Hint(
            fractions_are(by_another_logarithm(math.log)),
            "The bins move by log2(scale); that is the natural logarithm.",
        ),
        Hint(
            fractions_are(by_another_logarithm(math.log10)),
            "The bins move by log2(scale); that is the logarithm to the base 10.",
        ),
        Hint(
            fractions_are(by_another_logarithm(lambda scale: scale)),
            "The scale itself is added to the exponents: 2^k times 2^s is 2^(k + s), so the bins move by log2(scale).",
        ),
        Hint(
            fractions_are(lambda tree, scale: share(tree, tree["exponents"] * scale < -25)),
            "The exponents are multiplied by the scale: 2^k times 2^s is 2^(k + s), so log2(scale) is added to them.",
        ),
        Hint(fractions_are(never_to_the_left), A_SCALE_BELOW_1),
        Hint(fractions_are(always_to_the_right), A_SCALE_BELOW_1),
        Hint(fractions_are(of_bins), "That is a fraction of the bins. Count the gradients in them."),
        Hint(fractions_are(of_filled_bins), "That is a fraction of the bins. Count the gradients in them."),
        Hint(
            fractions_are(kept), "That is the fraction that survives. The exercise asks for the one that becomes zero."
        ),
        Hint(
            fractions_are(either_end),
            "Gradients that become infinite are counted too. Count only those that become zero.",
        ),
        Hint(
            scale_is(last_bin),
            "The last bins hold nothing: look for the largest exponent among bins whose count is not 0.",
        ),
        Hint(
            scale_is(lambda tree: math.log2(safe_scale(tree))),
            "That is the exponent of the scale: return 2.0 to that power.",
        ),
        Hint(passes_over_few, TOO_LARGE),
        *(
            Hint(scale_is(saves_the_smallest(target, empty_too, least)), FROM_THE_SMALLEST)
            for target in BARELY_KEPT
            for empty_too in (False, True)
            for least in (0.0, 1.0)
        ),
        Hint(
            lambda run: math.frexp(run.got["largest_safe_scale"])[0] != 0.5,
            "This is not a power of two. Only a power of two moves every bin by whole steps and adds no rounding of "
            "its own.",
        ),
        Hint(
            lambda run: run.got["largest_safe_scale"] == 1 > safe_scale(run.tree),
            "These gradients need a scale below 1: the largest bin in use lies above [2^14, 2^15) and moves down.",
        ),
        Hint(
            lambda run: run.got["largest_safe_scale"] == 2 * safe_scale(run.tree),
            "Twice too large: fp16 ends at 65504, inside the bin from 2^15 to 2^16, so that this bin must stay empty.",
        ),
        Hint(
            lambda run: run.got["largest_safe_scale"] == 4 * safe_scale(run.tree),
            "Four times too large: fp16 ends at 65504, just below 2^16, and this scale moves the largest bin in use to "
            "[2^16, 2^17), where all of it is infinite.",
        ),
        Hint(
            lambda run: run.got["largest_safe_scale"] > safe_scale(run.tree),
            TOO_LARGE,
        ),
        Hint(
            lambda run: 0 < run.got["largest_safe_scale"] < safe_scale(run.tree),
            "Safe, but a larger power of two would be safe too: the largest bin in use may move up to [2^14, 2^15).",
        ),
    ),
)
