"""Lab 02: a rounding that went wrong beside the right one, and which of the usual mistakes it looks like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab02.format_case import FormatCase
from labkit.oracles.lab02.library import census, known, limits_of, patterns_of, values_of
from labkit.spec import CANNOT_TELL, CaseRun


class Encoded:
    """A wrong rounding beside the right one, with the values that both patterns stand for."""

    def __init__(self, run: CaseRun[FormatCase]) -> None:
        self.case, self.sent, self.x = run.case, run.tree["x"], run.tree["x"].to(torch.float64)
        self.true, self.got = patterns_of(run.tree["x"], run.case), run.got["out"]
        if self.got.dtype != self.true.dtype or self.got.shape != self.true.shape:
            raise TypeError("nothing to diagnose before the dtype and the shape are right")
        self.sign = 2 ** (run.case.fmt.total_bits - 1)
        self.wrong = self.true != self.got
        limits = limits_of(run.case)
        self.nan, self.large = self.x.isnan(), self.x.abs() > limits["max"]
        self.small = self.x.abs() < limits["smallest_normal"]
        self.true_value = values_of(self.true, run.case)
        self.got_value = values_of(self.got & (2 * self.sign - 1), run.case)
        self.step = 2**run.case.mantissa_bits  # in patterns, from one power of two to the next
        self.infinity = self.sign - self.step
        # Magnitudes as patterns. What is negative or too wide stays so.
        self.true_size, self.got_size = self.true & (self.sign - 1), self.got - (self.true & self.sign)

    def only(self, where: torch.Tensor) -> bool:
        """Whether there are wrong patterns, and all of them lie there."""
        return bool(self.wrong.any() and not (self.wrong & ~where).any())

    @property
    def tie(self) -> torch.Tensor:
        """Where x lies as far from the pattern that came back as from the right one."""
        return self.wrong & ((self.got_value - self.x).abs() == (self.true_value - self.x).abs())

    @property
    def inside(self) -> torch.Tensor:
        """Wrong within the range of the format, where both patterns are finite."""
        return self.wrong & ~self.nan & ~self.large & self.got_value.isfinite() & self.true_value.isfinite()

    @property
    def normal(self) -> torch.Tensor:
        """Wrong among the normal numbers."""
        return self.inside & ~self.small

    def first_is(self, where: torch.Tensor) -> bool:
        """Whether the first wrong pattern, the one that is shown, lies there."""
        return bool(self.wrong.any() and where.reshape(-1)[self.wrong.reshape(-1).nonzero()[0]])

    @property
    def no_pattern(self) -> torch.Tensor:
        """Where what came back is negative, has bits above the sign, or is a NaN that x is not."""
        return (self.got < 0) | (self.got >= 2 * self.sign) | (self.got_value.isnan() & ~self.nan)

    def nan_of_other_formats(self) -> bool:
        """Whether NaN alone is wrong, and came back as an ordinary number of the top exponent."""
        number = self.got_value.isfinite() & (self.got % self.sign > self.infinity)
        return self.case.finite_only and self.only(self.nan) and everywhere(number, self.wrong)

    def nan_is_infinity(self) -> bool:
        """Whether NaN alone is wrong, and became what infinity becomes: the largest number, without infinities."""
        infinities = (self.got_value[self.wrong].isinf() | self.case.finite_only).any()
        return self.only(self.nan) and bool(infinities) and not (self.got < 0).any()

    def held_below_the_top_exponent(self) -> bool:
        """Whether all that is wrong came back as the first pattern of the top exponent, which is infinity in others."""
        return self.case.finite_only and bool((self.got[self.wrong] % self.sign == self.infinity).all())

    def past_infinity(self) -> object:
        """Whether what is too large has a pattern above that of infinity. Infinity alone may wrap around to any."""
        if not self.only(self.large | self.nan):
            return False
        return bool((self.large & self.no_pattern).any()) or (CANNOT_TELL if self.only(self.x.isinf()) else False)

    def negated(self) -> bool:
        """Whether negative numbers came back as minus the pattern of their size."""
        where = self.wrong & ~self.nan
        minus = bool((self.got[where] < 0).any()) and everywhere(-self.got == self.true_size, where)
        return minus and self.only(self.x.signbit() | self.nan)

    def sign_too_far_left(self) -> bool:
        """Whether all patterns but those of NaN are right but for the sign bit, which is worth twice as much."""
        return everywhere(self.got == self.true + (self.true & self.sign), ~self.nan) and self.only(self.x.signbit())

    def carry_lost(self) -> bool:
        """Whether only values that round up to a power of two are wrong, and came back too small."""
        carried = (self.true_size % self.step == 0) & (self.x.abs() < self.true_value.abs())
        return everywhere(carried & (self.got_size < self.true_size), self.inside)

    def exponent_off_by(self, offset: int) -> bool:
        """Whether the exponent field of every normal number is off by this, where it still fits."""
        shifted = self.true_size + offset * self.step
        there = ~self.small & ~self.large & ~self.nan & (shifted >= self.step) & (shifted < self.infinity)
        return everywhere(self.got_size == shifted, there)

    def fraction_below_one(self) -> bool:
        """Whether numbers are written with a fraction in [0.5, 1), as frexp returns it, and not in [1, 2)."""
        mantissa = self.true_size % self.step
        there = ~self.small & ~self.large & ~self.nan & (mantissa > 0) & (self.true_size < self.infinity)
        halved = self.true_size - mantissa + self.step / 2 + mantissa / 2
        return everywhere((self.got_size - halved).abs() <= 0.5, there)

    def rounded_twice(self) -> bool:
        """Whether float16 or bfloat16 of every number, rounded again, explains all patterns but those of NaN."""
        first = (self.sent.to(dtype).to(self.sent.dtype) for dtype in (torch.float16, torch.bfloat16))
        return any(((patterns_of(x, self.case) == self.got) | self.nan).all() for x in first)

    def truncated(self) -> bool:
        """Whether every wrong normal number, not only ties and carries, is the right one's neighbour toward zero."""
        down = (self.got_size == self.true_size - 1) & (self.got_value.abs() <= self.x.abs())
        ordinary = self.normal & ~self.tie & (self.true_size % self.step > 0)
        return bool(ordinary.any()) and everywhere(down, self.normal)

    def zero_from_frexp(self) -> bool:
        """Whether 0 came back as a number with the exponent that frexp gives it, or one beside that."""
        powers = torch.tensor([0.25, 0.5, 1.0], dtype=torch.float64)
        return everywhere(torch.isin(self.got_value.abs(), powers), self.x == 0)


def everywhere(holds: torch.Tensor, where: torch.Tensor) -> bool:
    """Whether it holds at each of the places, of which there is one at least."""
    return bool(where.any() and holds[where].all())


def which_are_wrong(run: CaseRun[FormatCase]) -> str | None:
    """Which kinds of numbers came back as a wrong pattern."""
    if not known(run.case):
        return None
    e = run.memo(Encoded)
    finite, zero = e.x.isfinite(), e.x == 0
    tie = (e.x != e.true_value) & finite & ~e.large & is_tie(e)
    kinds = {
        "zeros": zero,
        "numbers below the smallest normal one": e.small & ~zero & ~tie,
        "ties": tie,
        "other normal numbers": finite & ~e.small & ~e.large & ~tie,
        "finite numbers above the largest": finite & e.large,
        "infinities": e.x.isinf(),
        "NaN": e.nan,
    }
    return census(e.wrong, kinds)


def is_tie(e: Encoded) -> torch.Tensor:
    """Where x lies half-way between the right pattern and one of its neighbours."""
    beside = [values_of((e.true + step) & (2 * e.sign - 1), e.case) for step in (-1, 1)]
    distance = (e.true_value - e.x).abs()
    return torch.stack([(value - e.x).abs() == distance for value in beside]).any(0)


def encoded(when: Callable[[Encoded], object]) -> Callable[[CaseRun[FormatCase]], object]:
    """A diagnosis of 02-encode, on the formats whose values are known here; a made-up one cannot tell."""
    return lambda run: when(run.memo(Encoded)) if known(run.case) else CANNOT_TELL
