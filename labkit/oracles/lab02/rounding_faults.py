"""Lab 02: the first thing that is wrong with stochastically rounded values, which `stochastic_rounding` asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from labkit.exercises.lab02.stochastic_rounding import Draws
from labkit.oracles.hints import once
from labkit.spec import CaseRun

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
    if run.case.just_above:
        return find_wrong_ends(run)
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


def find_wrong_ends(run: CaseRun[Draws]) -> RoundingFault | None:
    """A value that must stay and left, or one that should leave rarely and stayed: by chance once in e^32 answers."""
    (exact, above), (exact_left, above_left) = run.tree["x"].tolist(), run.got["left"]
    if exact_left:
        return RoundingFault(
            "exact", f"{exact:.9g}, which bfloat16 has, changed in {exact_left:,} of {run.case.n_copies:,} draws"
        )
    if above_left:
        return None
    mean = run.case.n_copies / 2**16
    return RoundingFault(
        "short",
        f"{above:.9g} was never rounded away from zero in {run.case.n_copies:,} draws; unbiased are {mean:.0f} of them",
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
