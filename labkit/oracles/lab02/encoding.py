"""Lab 02: what is true of values rounded into a format, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.formats import FormatCase
from labkit.oracles.lab02.library import HARD_CODED, fields, known, limits_of, patterns_of, values_of
from labkit.spec import Hint, Oracle


class Encoded:
    """A wrong rounding beside the right one, with the values that both patterns stand for."""

    def __init__(self, case: FormatCase, tree: dict, got: dict) -> None:
        self.case, self.x = case, tree["x"].to(torch.float64)
        self.true, self.got = patterns_of(tree["x"], case), got["out"]
        if self.got.dtype != self.true.dtype or self.got.shape != self.true.shape:
            raise TypeError("nothing to diagnose before the dtype and the shape are right")
        self.sign = 2 ** (case.fmt.total_bits - 1)
        self.wrong = self.true != self.got
        limits = limits_of(case)
        self.nan, self.large = self.x.isnan(), self.x.abs() > limits["max"]
        self.small = self.x.abs() < limits["smallest_normal"]
        self.true_value = values_of(self.true, case)
        self.got_value = values_of(self.got & (2 * self.sign - 1), case)

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


def encoded(when: Callable[[Encoded], object]) -> Callable[[FormatCase, dict, dict], object]:
    """A diagnosis of 02-encode."""
    return lambda case, tree, got: when(Encoded(case, tree, got))


def _shown_float(case: FormatCase, tree: dict, index: tuple[int, ...] | None) -> str | None:
    if not index:
        return None
    x = float(tree["x"][index])
    try:
        right = fields(int(patterns_of(tree["x"][index], case)), case)
    except LookupError:
        return f"x = {x!r}"
    return f"x = {x!r}, which is {right} in this format"


ENCODE = Oracle(
    id="02-encode",
    expect=lambda case, tree: {"out": patterns_of(tree["x"], case)},
    judge=(inputs_untouched,),
    diagnose=(
        Hint(lambda case, tree, got: not known(case), HARD_CODED),
        Hint(
            encoded(lambda e: (e.got < 0).any() and e.only(e.x.signbit() | e.nan)),
            "Patterns are not negative: the sign is the top bit of the pattern, set or not, above the exponent.",
        ),
        Hint(
            encoded(lambda e: e.only(e.x.signbit()) and torch.equal(e.got | e.sign * e.wrong, e.true)),
            "The sign bit is missing, or missing for -0.0: `x < 0` is false for it, torch.signbit is not.",
        ),
        Hint(
            encoded(lambda e: e.only(e.nan)),
            "NaN must stay NaN, whatever its payload: cutting mantissa bits off a NaN can leave infinity.",
        ),
        Hint(
            encoded(lambda e: e.case.finite_only and e.only(e.large | e.nan)),
            "Overflow by the rule of this format: with finite_only there is no infinity, so that whatever is too "
            "large becomes the largest number, and only NaN becomes NaN.",
        ),
        Hint(
            encoded(lambda e: e.only(e.large) and (e.got_value[e.wrong].isfinite()).all()),
            "Overflow by the rule of this format: an IEEE format rounds to infinity from half a step above its "
            "largest number on; it does not saturate.",
        ),
        Hint(
            encoded(lambda e: e.only(e.large | e.nan)),
            "Right within the range, wrong above it: what becomes of a carry out of the largest exponent, of "
            "infinity and of numbers just above the largest?",
        ),
        Hint(
            encoded(
                lambda e: e.only(e.small) and (e.got_value[e.wrong] == 0).all() and (e.true_value[e.wrong] != 0).any()
            ),
            "Small values were flushed to zero: below the smallest normal number the format still has its subnormals.",
        ),
        Hint(
            encoded(lambda e: e.inside.any() and (e.tie == e.inside).all() and (e.got > e.true)[e.inside].all()),
            "Ties are rounded up: a value exactly half-way between two patterns goes to the one whose last bit is 0.",
        ),
        Hint(
            encoded(lambda e: e.inside.any() and (e.tie == e.inside).all()),
            "Everything is rounded to a nearest pattern, but ties the wrong way: half-way, the pattern whose last bit "
            "is 0 wins.",
        ),
        Hint(
            encoded(
                lambda e: (e.inside & ~e.small).any() and (e.got_value.abs() <= e.x.abs())[e.inside & ~e.small].all()
            ),
            "This truncates: cutting the extra bits off rounds toward zero, not to the nearest pattern.",
        ),
        Hint(
            encoded(lambda e: e.only(e.small | e.large | e.nan)),
            "The normal numbers are right, the small ones not: all subnormals have the spacing of the smallest normal "
            "number, so that its exponent is the least that may be used.",
        ),
    ),
    show=_shown_float,
)
