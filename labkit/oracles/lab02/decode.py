"""Lab 02: what is true of decoded patterns, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.format_case import FormatCase
from labkit.oracles.lab02.library import HARD_CODED, fields, known, limits_of, values_of
from labkit.spec import CaseRun, Hint, Oracle


class Decoded:
    """A wrong decoding beside the right one; `wrong` marks the elements that differ."""

    def __init__(self, run: CaseRun[FormatCase]) -> None:
        self.case, self.bits = run.case, run.tree["bits"]
        self.true, self.got = values_of(run.tree["bits"], run.case), run.got["out"]
        if self.got.dtype != self.true.dtype or self.got.shape != self.true.shape:
            raise TypeError("nothing to diagnose before the dtype and the shape are right")
        self.wrong = ~((self.true == self.got) | (self.true.isnan() & self.got.isnan()))
        small = self.true.abs() < limits_of(run.case)["smallest_normal"]
        self.zero, self.subnormal = self.true == 0, small & (self.true != 0)
        self.normal = self.true.isfinite() & ~small
        self.negative = run.tree["bits"] >= 2 ** (run.case.fmt.total_bits - 1)

    def only(self, where: torch.Tensor) -> bool:
        """Whether there are wrong values, and all of them lie there."""
        return bool(self.wrong.any() and not (self.wrong & ~where).any())

    def sign_in_exponent(self) -> bool:
        """Whether the negative numbers are those of an exponent field with the sign bit on top of it."""
        too_large = self.true.abs() * 2.0 ** (2**self.case.exponent_bits)
        return self.only(self.negative) and bool((self.got.abs() == too_large)[self.negative & self.normal].all())


def decoded(when: Callable[[Decoded], object]) -> Callable[[CaseRun[FormatCase]], object]:
    """A diagnosis of 02-decode."""
    return lambda run: when(run.memo(Decoded))


def keeps_sign_of_zero(run: CaseRun) -> str | None:
    """-0 equals +0, so the comparison of values cannot see this."""
    negative_zero = run.tree["bits"] == 2 ** (run.case.fmt.total_bits - 1)
    lost = negative_zero & ~torch.signbit(run.got["out"])
    gained = (run.tree["bits"] == 0) & torch.signbit(run.got["out"])
    if lost.any():
        return f"the pattern {fields(2 ** (run.case.fmt.total_bits - 1), run.case)} is -0.0, and came back as +0.0"
    return "the pattern with all bits zero is +0.0, and came back as -0.0" if gained.any() else None


DECODE = Oracle(
    id="02-decode",
    expect=lambda run: {"out": values_of(run.tree["bits"], run.case)},
    judge=(keeps_sign_of_zero, inputs_untouched),
    diagnose=(
        Hint(lambda run: not known(run.case), HARD_CODED),
        Hint(
            decoded(lambda d: d.wrong.any() and torch.equal(d.got.nan_to_num(), d.true.abs().nan_to_num())),
            "The signs are missing: the top bit of the pattern makes the value negative.",
            everywhere=False,
        ),
        Hint(
            decoded(Decoded.sign_in_exponent),
            "Right for positive numbers, far too large for negative ones: after the shift the sign bit still stands "
            "above the exponent field. Keep only the bits of the field, with `&`.",
            everywhere=False,
        ),
        Hint(
            decoded(lambda d: (2 * d.true == d.got)[d.normal].all() or (d.true == 2 * d.got)[d.normal].all()),
            "Every value is off by a factor of 2: the bias is off by one. The exponent field 011...1 stands for 2**0.",
            everywhere=False,
        ),
        Hint(
            decoded(lambda d: d.only(d.subnormal) and (d.true == 2 * d.got)[d.subnormal].all()),
            "The subnormals are half of what they should be: they use the exponent of the smallest normal number, "
            "1 - bias, not 0 - bias.",
            everywhere=False,
        ),
        Hint(
            decoded(lambda d: d.only(d.subnormal) and (d.got[d.wrong] == 0).all()),
            "The subnormals came back as zero: with an exponent field of 0 the mantissa bits still count.",
            everywhere=False,
        ),
        Hint(
            decoded(lambda d: d.only(d.subnormal | d.zero)),
            "The patterns with an exponent field of 0 are wrong: they are zero and the subnormals, which have no "
            "implicit leading 1.",
            everywhere=False,
        ),
        Hint(
            lambda run: run.case.finite_only and run.got["out"].isinf().any(),
            "This format has no infinity: with finite_only the highest exponent holds ordinary numbers, and only the "
            "pattern with all ones is NaN.",
        ),
        Hint(
            decoded(lambda d: d.case.finite_only and d.only(d.normal) and d.got[d.wrong].isnan().all()),
            "NaN for ordinary numbers: with finite_only the highest exponent holds numbers too, and only the pattern "
            "with all ones is NaN.",
            everywhere=False,
        ),
        Hint(
            decoded(lambda d: d.case.finite_only and d.only(d.true.isnan())),
            "With finite_only the pattern with all ones is NaN, not the next number.",
            everywhere=False,
        ),
        Hint(
            decoded(lambda d: d.only(~d.true.isfinite()) and d.got[d.wrong].isfinite().all()),
            "An exponent field of all ones is not one more power of two: it means infinity (mantissa 0) or NaN.",
            everywhere=False,
        ),
        Hint(
            decoded(lambda d: d.only(~d.true.isfinite())),
            "Infinity and NaN are mixed up: with an exponent of all ones, mantissa 0 is infinity with the sign of the "
            "pattern, anything else is NaN.",
            everywhere=False,
        ),
        Hint(
            lambda run: (
                torch.equal(run.got["out"].nan_to_num(), values_of(run.tree["bits"], run.case).nan_to_num())
                and keeps_sign_of_zero(run)
            ),
            "-0.0 and 0.0 compare as equal but are two patterns: 1 / -0.0 is -inf. Multiply by the sign at the very "
            "end, in floating point.",
            everywhere=False,
        ),
    ),
    show=lambda run, index: f"pattern {fields(int(run.tree['bits'][index]), run.case)}" if index else None,
)
