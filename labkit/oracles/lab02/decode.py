"""Lab 02: what is true of decoded patterns, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.format_case import FormatCase
from labkit.oracles.lab02.library import HARD_CODED, as_format, census, fields, known, same_values, values_of
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


class Decoded:
    """A wrong decoding beside the right one; `wrong` marks the elements that differ."""

    def __init__(self, run: CaseRun[FormatCase]) -> None:
        self.case, self.true, self.got = run.case, run.expected["out"], run.got["out"]
        if self.got.dtype != self.true.dtype or self.got.shape != self.true.shape:
            raise TypeError("nothing to diagnose before the dtype and the shape are right")
        self.wrong = ~same_values(self.true, self.got)
        self.bits = run.tree["bits"]
        self.mantissa = self.bits & (2**self.case.mantissa_bits - 1)
        small = run.tree["bits"] >> self.case.mantissa_bits & (2**self.case.exponent_bits - 1) == 0
        self.zero, self.subnormal = self.true == 0, small & (self.true != 0)
        self.normal = self.true.isfinite() & ~small
        self.negative = run.tree["bits"] >= 2 ** (run.case.fmt.total_bits - 1)

    def only(self, where: torch.Tensor) -> bool:
        """Whether there are wrong values, and all of them lie there."""
        return bool(self.wrong.any() and not (self.wrong & ~where).any())

    def power_off(self) -> bool:
        """Whether all normal numbers are off by one and the same power of two."""
        ratio = (self.got / self.true)[self.normal].unique()
        return len(ratio) == 1 and bool(torch.frexp(ratio[0])[0] == 0.5) and float(ratio[0]) != 1

    def full_mantissa_doubles(self) -> bool:
        """Whether a mantissa of all ones counts as a whole, as if it were divided by 2**mantissa_bits - 1."""
        full = 2**self.case.mantissa_bits - 1
        there = self.normal & (self.mantissa == full)
        wanted = self.true * 2 ** (self.case.mantissa_bits + 1) / (2 ** (self.case.mantissa_bits + 1) - 1)
        return bool(there.any()) and torch.allclose(self.got[there], wanted[there], rtol=1e-12, atol=0)

    def full_mantissa_is_nan(self) -> bool:
        """Whether a mantissa of all ones makes NaN of every exponent, where only the top one should have it."""
        full = self.mantissa == 2**self.case.mantissa_bits - 1
        return self.case.finite_only and self.only(full) and bool(self.got[full].isnan().all())

    def mantissa_one_bit_short(self) -> object:
        """Whether the top bit of the mantissa field counts for nothing."""
        if not known(self.case):
            return CANNOT_TELL
        without = self.bits & ~(1 << (self.case.mantissa_bits - 1))
        return bool(self.wrong.any() and same_values(values_of(without, self.case), self.got).all())

    def special_with_sign(self) -> bool:
        """Whether infinity and NaN are right without a sign, and the sign bit stands in their way with one."""
        if self.case.finite_only:
            return self.only(self.negative & self.true.isnan())
        return self.only(self.negative) and not self.got[self.wrong & (self.true != 0)].isfinite().any()

    def sign_in_exponent(self) -> bool:
        """Whether the negative numbers are those of an exponent field with the sign bit on top of it."""
        too_large = self.true.abs() * 2.0 ** (2**self.case.exponent_bits)
        return self.only(self.negative) and bool((self.got.abs() == too_large)[self.negative & self.normal].all())


def which_are_wrong(run: CaseRun[FormatCase]) -> str | None:
    """Which kinds of patterns are wrong."""
    d = run.memo(Decoded)
    kinds = {
        "zeros": d.zero,
        "subnormal numbers": d.subnormal,
        "normal numbers": d.normal,
        "infinities": d.true.isinf(),
        "NaN": d.true.isnan(),
    }
    return census(d.wrong, kinds)


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
            "The signs are missing. Where the top bit of the pattern is 1, the value is negative.",
        ),
        Hint(
            decoded(Decoded.sign_in_exponent),
            "Positive numbers are right, and negative ones are far too large: after the shift the sign bit still "
            "stands above the exponent field. Keep only the bits of the field, with `&`.",
        ),
        Hint(
            decoded(lambda d: (2 * d.true == d.got)[d.normal].all() or (d.true == 2 * d.got)[d.normal].all()),
            "Every value is off by a factor of 2, so the bias is off by one. The exponent field 011...1 stands for "
            "2**0.",
        ),
        Hint(
            decoded(Decoded.power_off),
            "All normal numbers are off by the same power of two, so the bias is wrong. It differs from format to "
            "format: 2**(exponent_bits - 1) - 1.",
        ),
        Hint(
            decoded(Decoded.full_mantissa_doubles),
            "A mantissa field of all ones is still one step short of the next power of two: divide the field by "
            "2**mantissa_bits, not by 2**mantissa_bits - 1.",
        ),
        Hint(
            decoded(Decoded.mantissa_one_bit_short),
            "The top bit of the mantissa field is lost: the mask that cuts the field out is one bit too short. The "
            "field has mantissa_bits bits, and a mask of n bits is 2**n - 1.",
        ),
        Hint(
            decoded(Decoded.full_mantissa_is_nan),
            "NaN came back wherever the mantissa field is full. With finite_only the exponent field has to be full "
            "as well.",
        ),
        Hint(
            decoded(lambda d: d.only(d.subnormal) and (d.true == 2 * d.got)[d.subnormal].all()),
            "The subnormals are half of what they should be. They share the exponent of the smallest normal number, "
            "which is 1 - bias, not 0 - bias.",
        ),
        Hint(
            decoded(lambda d: d.only(d.subnormal) and (d.got[d.wrong] == 0).all()),
            "The subnormals came back as zero. With an exponent field of 0 the mantissa bits still count.",
        ),
        Hint(
            decoded(lambda d: d.only(d.subnormal | d.zero)),
            "The patterns with an exponent field of 0 are wrong. They are zero and the subnormals, and they have no "
            "implicit leading 1.",
        ),
        Hint(
            lambda run: run.case.finite_only and run.got["out"].isinf().any(),
            "This format has no infinity. With finite_only the highest exponent holds ordinary numbers, and only the "
            "pattern with all ones is NaN.",
        ),
        Hint(
            decoded(lambda d: d.case.finite_only and d.only(d.normal) and d.got[d.wrong].isnan().all()),
            "Ordinary numbers came back as NaN. With finite_only the highest exponent holds numbers too, and only the "
            "pattern with all ones is NaN.",
        ),
        Hint(
            decoded(Decoded.special_with_sign),
            "Infinity and NaN are wrong only where the sign bit is set. Compare the exponent and the mantissa field "
            "with the special values, not the whole pattern.",
        ),
        Hint(
            decoded(lambda d: d.case.finite_only and d.only(d.true.isnan())),
            "With finite_only the pattern with all ones is NaN, not the next number.",
        ),
        Hint(
            decoded(lambda d: d.only(~d.true.isfinite()) and d.got[d.wrong].isfinite().all()),
            "An exponent field of all ones is not one more power of two. It means infinity if the mantissa is 0, and "
            "NaN otherwise.",
        ),
        Hint(
            decoded(lambda d: d.only(~d.true.isfinite())),
            "Infinity and NaN are mixed up. With an exponent field of all ones, mantissa 0 means infinity, with the "
            "sign of the pattern, and any other mantissa means NaN.",
        ),
        Hint(
            decoded(lambda d: not d.wrong.any()),
            "-0.0 and 0.0 compare as equal but are two patterns: 1 / -0.0 is -inf. Multiply by the sign at the very "
            "end, in floating point.",
        ),
    ),
    fact=which_are_wrong,
    call=lambda run: f"decode(bits, {as_format(run.case)})",
    show=lambda run, index: (
        f"bits = {int(run.tree['bits'][index])}, in fields {fields(int(run.tree['bits'][index]), run.case)}"
        if index
        else None
    ),
)
