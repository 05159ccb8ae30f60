"""Lab 02: what is true of stochastic rounding, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.stochastic_rounding import Draws
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

FAILURE_PROBABILITY = 1e-12
"""How often a right answer may leave the bound below, for each value (Hoeffding's inequality)."""


@dataclass(frozen=True)
class RoundingFault:
    """What is wrong with rounded values. `key` picks the hint."""

    key: str
    text: str


def neighbours(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bfloat16 values next to float32 x, below and above, in float64; both are x where bfloat16 has it."""
    nearest, inf = x.to(torch.bfloat16), torch.full_like(x, math.inf).to(torch.bfloat16)
    below = torch.where(nearest.double() > x.double(), torch.nextafter(nearest, -inf), nearest)
    above = torch.where(nearest.double() < x.double(), torch.nextafter(nearest, inf), nearest)
    return below.double(), above.double()


@once
def find(run: CaseRun[Draws]) -> RoundingFault | None:
    """The first thing that is wrong, the plainest first."""
    got = run.got
    x, calls = run.tree["x"], [*got["rounded"], got["next"], got["again"]]
    shape = (run.case.n_copies, len(x))
    for call in calls:
        if not isinstance(call, torch.Tensor):
            return RoundingFault("kind", f"expected a bfloat16 tensor, got {type(call).__name__}")
        if call.dtype != torch.bfloat16 or call.shape != shape:
            have = f"{str(call.dtype).removeprefix('torch.')} of shape {tuple(call.shape)}"
            return RoundingFault("kind", f"expected bfloat16 of shape {shape}, got {have}")
    below, above = neighbours(x)
    plain = x.isfinite() & below.isfinite() & above.isfinite()
    inexact = plain & (below != above)
    rounded = torch.cat(got["rounded"])
    return (
        find_no_chance(x, got["rounded"], inexact)
        or find_not_neighbours(x, rounded, below, above, plain)
        or find_not_finite(x, rounded, plain)
        or find_zero_of_other_sign(x, rounded)
        or find_wrong_generator(got, inexact)
        or find_bias(x, rounded, below, above, inexact)
        or find_shared_draws(x, rounded, below, above, inexact)
    )


def find_no_chance(x: torch.Tensor, calls: list[torch.Tensor], inexact: torch.Tensor) -> RoundingFault | None:
    """Every copy of a value rounded alike."""
    if any((call != call[0])[:, inexact].any() for call in calls):
        return None
    first = torch.stack([call[0] for call in calls])[:, inexact]
    if (first != first[0]).any():
        return RoundingFault("one-draw", f"in one call all {len(calls[0])} copies of a value go the same way")
    toward_zero = (x.view(torch.int32) & -0x10000).view(torch.float32)[inexact].to(torch.bfloat16)
    from_zero = torch.nextafter(toward_zero, toward_zero * math.inf)
    key = (
        "truncates" if torch.equal(first[0], toward_zero) else "away" if torch.equal(first[0], from_zero) else "nearest"
    )
    value, out = x[inexact][0].item(), first[0][0].item()
    return RoundingFault(key, f"{value:.9g} always becomes {out:.9g}, with every seed")


def find_not_neighbours(x, rounded, below, above, plain) -> RoundingFault | None:
    """A value that is neither the bfloat16 below nor the one above."""
    bad = ((rounded.double() != below) & (rounded.double() != above))[:, plain]
    if not bad.any():
        return None
    column = int(bad.any(0).nonzero()[0])
    i = int(plain.nonzero()[column])
    out = rounded[bad[:, column].nonzero()[0], i].item()
    bad_values = x[plain][bad.any(0)]
    exact = below[i] == above[i]
    if (bad_values.abs() < torch.finfo(torch.bfloat16).tiny).all() and not rounded[:, plain][bad].any():
        key = "flushed"
    elif rounded_again(x[plain], rounded[:, plain]):
        key = "again"
    elif (below == above)[plain][bad.any(0)].all():
        key = "swapped" if chances_swapped(x, rounded, below, above, plain & (below != above)) else "exact"
    else:
        key = "negative" if (bad_values < 0).all() else "far"
    beside = "which bfloat16 has exactly" if exact else f"between {below[i]:.9g} and {above[i]:.9g}"
    return RoundingFault(key, f"{x[i]:.9g}, {beside}, became {out:.9g}")


def steps_from_zero(x: torch.Tensor, rounded: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """By how many bfloat16 each result is farther from zero than x cut off, and the fraction of a step cut off."""
    bits = x.view(torch.int32) & 0x7FFFFFFF
    steps = (rounded.contiguous().view(torch.int16) & 0x7FFF).int() - (bits >> 16)
    return steps, (bits & 0xFFFF).double() / 2**16


def rounded_again(x: torch.Tensor, rounded: torch.Tensor) -> bool:
    """Noise of one step, and then the cast's rounding to nearest: where x + noise ends decides, and not the carry."""
    steps, fraction = steps_from_zero(x, rounded)
    low, high = steps[:, fraction < 0.49], steps[:, fraction > 0.51]
    inside = bool(((low == 0) | (low == 1)).all() and ((high == 1) | (high == 2)).all())
    return inside and bool((high == 2).any())


def bound_of(rounded: torch.Tensor) -> float:
    """How far the share of upward roundings may be from its expectation, for each value."""
    return math.sqrt(math.log(2 / FAILURE_PROBABILITY) / (2 * len(rounded)))


def chances_swapped(x, rounded, below, above, inexact) -> bool:
    """Up as often as it should have gone down."""
    wanted = ((x.double() - below) / (above - below))[inexact]
    share = (rounded.double() == above)[:, inexact].double().mean(0)
    return bool(((share - (1 - wanted)).abs() <= bound_of(rounded)).all())


def narrow_bits(x: torch.Tensor, rounded: torch.Tensor) -> int | None:
    """k where noise from 0 to 2^k - 1, k < 16, explains how often each value moved away from zero."""
    steps, fraction = steps_from_zero(x, rounded)
    share = (steps == 1).double().mean(0)
    for k in range(1, 16):
        wanted = (1 - (1 - fraction) * 2 ** (16 - k)).clamp(min=0)
        if ((share - wanted).abs() <= bound_of(rounded)).all():
            return k
    return None


def find_not_finite(x, rounded, plain) -> RoundingFault | None:
    """inf and NaN stay; a finite number beyond the largest bfloat16 becomes that one."""
    nan, infinite = x.isnan(), x.isinf()
    if not rounded[:, nan].isnan().all():
        return RoundingFault("nan", f"NaN became {rounded[:, nan][~rounded[:, nan].isnan()][0].item():.9g}")
    if (rounded[:, infinite].float() != x[infinite]).any():
        return RoundingFault("inf", "inf did not stay inf")
    beyond = x.isfinite() & ~plain
    largest = torch.finfo(torch.bfloat16).max
    wrong = rounded[:, beyond].float() != largest * x[beyond].sign()
    if wrong.any():
        value, out = x[beyond][wrong.any(0)][0].item(), rounded[:, beyond][wrong][0].item()
        return RoundingFault("overflow", f"{value:.9g} is finite, and became {out:.9g}")
    return None


def find_zero_of_other_sign(x, rounded) -> RoundingFault | None:
    """-0 equals 0, so that the comparison with the neighbours cannot see this."""
    if torch.equal(rounded[:, x == 0].signbit(), x[x == 0].signbit().expand(len(rounded), -1)):
        return None
    return RoundingFault("zero", "a zero came back with the other sign")


def find_wrong_generator(got: dict, inexact: torch.Tensor) -> RoundingFault | None:
    """The same seed must give the same draws, and a generator used again or seeded otherwise must not."""
    first, *others = (call[:, inexact] for call in got["rounded"])
    if not torch.equal(got["again"][:, inexact], first):
        return RoundingFault("ignored", "two generators with the same seed gave different results")
    if any(torch.equal(first, other) for other in others):
        return RoundingFault("reseeded", "generators with different seeds gave the same results")
    if torch.equal(got["next"][:, inexact], first):
        return RoundingFault("reseeded", "a generator used a second time gave the same draws again")
    return None


def find_bias(x, rounded, below, above, inexact) -> RoundingFault | None:
    """The share of upward roundings of each value must be near its place between its neighbours."""
    wanted = ((x.double() - below) / (above - below))[inexact]
    share = (rounded.double() == above)[:, inexact].double().mean(0)
    off = (share - wanted).abs()
    if off.max() <= bound_of(rounded):
        return None
    i = int(off.argmax())
    swapped = chances_swapped(x, rounded, below, above, inexact)
    narrow = not swapped and narrow_bits(x[inexact], rounded[:, inexact])
    return RoundingFault(
        "swapped" if swapped else "narrow" if narrow else "bias",
        f"{x[inexact][i]:.9g} was rounded up in {share[i]:.1%} of {len(rounded)} draws; unbiased is {wanted[i]:.1%}",
    )


def find_shared_draws(x, rounded, below, above, inexact) -> RoundingFault | None:
    """How often two values side by side go different ways, one up and one down, if each has a draw of its own."""
    wanted = ((x.double() - below) / (above - below))[inexact]
    up = (rounded.double() == above)[:, inexact]
    first, second = wanted[:-1], wanted[1:]
    expected = first * (1 - second) + second * (1 - first)
    share = (up[:, :-1] != up[:, 1:]).double().mean(0)
    off = (share - expected).abs()
    if off.max() <= bound_of(rounded):
        return None
    i = int(off.argmax())
    left, right = x[inexact][i : i + 2].tolist()
    return RoundingFault(
        "one-draw",
        f"{left:.6g} and {right:.6g}, side by side, went different ways in {share[i]:.1%} of {len(rounded)} draws, not "
        f"in {expected[i]:.1%}",
    )


def rounding_problem(run: CaseRun) -> str | None:
    finding = find(run)
    return finding and finding.text


def found(key: str, *cannot_tell: str) -> Callable[[CaseRun[Draws]], object]:
    """A diagnosis: the finding is this one. One of `cannot_tell` says nothing against it: few draws hide it."""

    def diagnose(run: CaseRun[Draws]) -> object:
        finding = find(run)
        if finding is not None and finding.key in cannot_tell:
            return CANNOT_TELL
        return finding is not None and finding.key == key

    return diagnose


def called(run: CaseRun[Draws]) -> str:
    """How it was called, each time."""
    columns = len(run.tree["x"])
    return (
        f"stochastic_round(x, generator), x float32 of shape ({run.case.n_copies}, {columns}): in each column the same "
        f"number, of size {run.case.scale:g} or a special value"
    )


STOCHASTIC_ROUNDING = Oracle(
    id="02-stochastic-rounding",
    judge=(inputs_untouched, rounding_problem),
    diagnose=(
        Hint(found("kind"), "Return a bfloat16 tensor of x's shape, and leave the last conversion nothing to round."),
        Hint(found("truncates"), "The low 16 bits are cut off, which rounds toward zero. Add noise to them first."),
        Hint(
            found("nearest"),
            "This is rounding to nearest: adding half a step always rounds a number the same way, so a small update "
            "is lost every time. The number added must be random, from zero to just below a whole bfloat16 step.",
        ),
        Hint(
            found("away"),
            "Every value moves away from zero. What is added must be random, from zero to just below a whole bfloat16 "
            "step.",
        ),
        Hint(found("one-draw"), "One random number serves several elements. Draw one for every element."),
        Hint(
            found("again"),
            "The noise is right, but the last conversion rounds once more, to nearest. Cut the low 16 bits off after "
            "adding, so that the conversion has nothing left to round.",
        ),
        Hint(
            found("flushed"),
            "Small values came back as 0. Below its smallest normal number, 2**-126, bfloat16 has subnormals too.",
        ),
        Hint(
            found("swapped"),
            "The two probabilities are swapped: a value close to its lower neighbour mostly goes up. A draw from [0, "
            "1) is below p with probability p.",
        ),
        Hint(
            found("narrow", "bias", "reseeded"),
            "The noise is too narrow: values low in a step never reach the next one. It must be uniform over exactly "
            "one bfloat16 step, which is 2**16 float32 steps.",
        ),
        Hint(
            found("exact"),
            "A value that bfloat16 has must stay. The noise must be less than one bfloat16 step: below 2**16, as a "
            "whole number of float32 steps.",
        ),
        Hint(found("negative"), "Only negative values are wrong. Is the step taken away from zero, or always upward?"),
        Hint(
            found("far"),
            "The result is neither of the two bfloat16 neighbours of x. Either the noise is wider than one bfloat16 "
            "step, or the step is not the one at x: it is 2**16 float32 steps, and doubles at every power of two.",
        ),
        Hint(
            found("nan"),
            "NaN did not stay NaN. Adding to its bits can run into the sign bit, and clearing them can leave inf. "
            "Take special values from x itself.",
        ),
        Hint(
            found("zero"),
            "bfloat16 has both zeros, so -0.0 stays -0.0. Adding 0.0 to it, or choosing a plain 0, loses the sign.",
        ),
        Hint(found("inf"), "inf has to stay inf. Take special values from x itself."),
        Hint(
            found("overflow"),
            "Above the largest finite bfloat16 a carry makes inf. A finite x must stay finite, so round it toward "
            "zero there.",
        ),
        Hint(
            found("ignored"),
            "The draws did not come from `generator` but from PyTorch's global one. Pass generator=generator on.",
        ),
        Hint(
            found("reseeded"),
            "The generator's state was not used, or was set back. Draw from it as it is, without seeding anything.",
        ),
        Hint(
            found("bias"),
            "The chance of rounding up must be the fraction of the step by which x lies above its lower neighbour. Is "
            "the noise uniform over exactly one bfloat16 step, that is 16 bits?",
        ),
    ),
    call=called,
)
