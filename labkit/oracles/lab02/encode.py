"""Lab 02: what is true of values rounded into a format, and the hint for each of the usual mistakes."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.format_case import FormatCase
from labkit.oracles.lab02.encoded import Encoded, encoded, everywhere, which_are_wrong
from labkit.oracles.lab02.library import HARD_CODED, as_format, fields, known, limits_of, patterns_of, values_of
from labkit.spec import CaseRun, Hint, Oracle

PAST_INFINITY = (
    "Nothing bounds what is too large: its pattern runs past that of infinity, into the NaN patterns or out of the "
    "format's bits. Clamp the pattern to that of infinity, or to the largest number with finite_only."
)


def _pattern(pattern: int, case: FormatCase) -> str:
    """A pattern as "0 01111 0000000000 = 1", or why it is none."""
    if not 0 <= pattern < 2**case.fmt.total_bits:
        return f"no pattern of {case.fmt.total_bits} bits"
    return f"{fields(pattern, case)} = {float(values_of(torch.tensor([pattern]), case)):.8g}"


def _shown_float(run: CaseRun[FormatCase], index: tuple[int, ...] | None) -> str | None:
    """The value, and the bits and the values of the right and of the wrong pattern."""
    if not index:
        return None
    x = run.tree["x"][index]
    try:
        right, wrong = (
            _pattern(int(patterns_of(x.reshape(1), run.case)), run.case),
            _pattern(int(run.got["out"][index]), run.case),
        )
    except LookupError:
        return f"x = {float(x)!r}"
    return f"x = {float(x):.9g}; right: {right}; yours: {wrong}"


ENCODE = Oracle(
    id="02-encode",
    expect=lambda run: {"out": patterns_of(run.tree["x"], run.case)},
    judge=(inputs_untouched,),
    diagnose=(
        Hint(
            lambda run: run.got["out"].shape != run.tree["x"].shape,
            "Return one pattern for each element: the result has the shape of x, which may be any.",
        ),
        Hint(lambda run: not known(run.case), HARD_CODED),
        Hint(
            encoded(Encoded.zero_from_frexp),
            "Zero has no exponent of its own: torch.frexp returns 0 for it, which is the exponent of numbers from 0.5 "
            "to 1. Clamp the size before, from below to some 2**-200 and from above to 2**200, because frexp returns "
            "0 for infinity too.",
        ),
        Hint(
            encoded(Encoded.nan_of_other_formats),
            "With finite_only an exponent field of all ones does not make a NaN: your pattern is an ordinary number. "
            "Only the pattern with all exponent and all mantissa bits set is NaN.",
        ),
        Hint(
            encoded(lambda e: e.first_is(e.nan & ~e.got_value.isinf())),
            "NaN is wrong. Comparisons with NaN are always false, and its cast to int64 is arbitrary. Put a NaN "
            "pattern in at the end, where x.isnan().",
        ),
        Hint(
            encoded(Encoded.negated),
            "Patterns are not negative. The sign is the top bit of the pattern, above the exponent field.",
        ),
        Hint(
            encoded(lambda e: e.only(e.x.signbit()) and torch.equal(e.got | e.sign * e.wrong, e.true)),
            "The sign bit is missing, or missing for -0.0: `x < 0` is false for it, torch.signbit is not.",
        ),
        Hint(
            encoded(Encoded.sign_too_far_left),
            "The sign bit is one place too far left: it follows the exponent and mantissa bits, so it is worth "
            "2**(exponent_bits + mantissa_bits), and total_bits counts the sign, too.",
        ),
        Hint(
            encoded(Encoded.nan_is_infinity),
            "NaN must stay NaN, whatever its mantissa bits are: if they are cut off or rounded, infinity can remain, "
            "or the carry can run into the sign.",
        ),
        Hint(
            encoded(Encoded.rounded_twice),
            "This rounds twice, first to a 16-bit format. A number that becomes a tie in the first rounding can go to "
            "the wrong side in the second. Round the float32 itself.",
        ),
        Hint(
            encoded(lambda e: e.only(e.x.isinf() | e.nan) and everywhere(e.got < 0, e.wrong & e.x.isinf())),
            "Infinity is wrong. It has no exponent that torch.frexp or a logarithm could find, and its cast to int64 "
            "gives -2**63. Clamp the size before, in float64, to some 2**200.",
        ),
        Hint(
            encoded(lambda e: e.case.finite_only and e.only(e.large | e.nan)),
            "With finite_only there is no infinity: whatever is too large becomes the largest number, and only NaN "
            "becomes NaN.",
        ),
        Hint(
            encoded(Encoded.held_below_the_top_exponent),
            "With finite_only the top exponent holds ordinary numbers, up to the pattern before NaN's. Clamp to all "
            "ones less 1, not to the pattern that would be infinity in another format.",
        ),
        Hint(
            encoded(lambda e: e.only(e.large) and (e.got_value[e.wrong].abs() == limits_of(e.case)["max"]).all()),
            "An IEEE format rounds to infinity from half a step above its largest number on. It does not saturate.",
        ),
        Hint(
            encoded(Encoded.past_infinity),
            PAST_INFINITY,
        ),
        Hint(
            encoded(lambda e: e.only(e.large | e.nan)),
            "Everything within the range is right, and what lies above it is wrong. Look at three things: a carry out "
            "of the largest exponent, infinity, and numbers just above the largest.",
        ),
        Hint(
            encoded(
                lambda e: e.only(e.small) and (e.got_value[e.wrong] == 0).all() and (e.true_value[e.wrong] != 0).any()
            ),
            "Small values became zero. Below the smallest normal number the format still has its subnormals.",
        ),
        Hint(
            encoded(Encoded.truncated),
            "This truncates: cutting the extra bits off rounds toward zero, not to the nearest pattern.",
        ),
        Hint(
            encoded(lambda e: e.first_is(e.large & e.no_pattern)),
            PAST_INFINITY,
        ),
        Hint(
            encoded(lambda e: e.exponent_off_by(1)),
            "Every exponent field is one too large, and every value doubled. Either the bias is not 2**(exponent_bits "
            "- 1) - 1, or the steps count the leading 1 too, which already adds 1 to the exponent field.",
        ),
        Hint(
            encoded(lambda e: e.exponent_off_by(-1)),
            "Every exponent field is one too small, and every value halved. The bias is 2**(exponent_bits - 1) - 1. "
            "If yours is, look for a 1 that you subtract twice.",
        ),
        Hint(
            encoded(Encoded.fraction_below_one),
            "torch.frexp returns a fraction in [0.5, 1), and the format needs one in [1, 2). So the exponent of a "
            "number between 2**p and 2**(p+1) is p, and frexp returns p + 1.",
        ),
        Hint(
            encoded(Encoded.carry_lost),
            "The carry into the exponent is lost. A mantissa that rounds up to 2**mantissa_bits is the next power of "
            "two. Add it to the shifted exponent, because `|` does not carry.",
        ),
        Hint(
            encoded(lambda e: e.inside.any() and (e.tie == e.inside).all() and (e.got > e.true)[e.inside].all()),
            "Ties are rounded up. A value exactly half-way between two patterns goes to the one whose last bit is 0.",
        ),
        Hint(
            encoded(lambda e: e.inside.any() and (e.tie == e.inside).all()),
            "Everything is rounded to a nearest pattern, but ties go the wrong way. Half-way, take the pattern whose "
            "last bit is 0.",
        ),
        Hint(
            encoded(lambda e: e.only(e.small | e.large | e.nan) and (e.wrong & e.small & (e.x != 0)).any()),
            "The normal numbers are right, the small ones are not. All subnormals have the spacing of the smallest "
            "normal number, so the exponent must not go below that of the smallest normal number.",
        ),
    ),
    fact=which_are_wrong,
    call=lambda run: f"encode(x, {as_format(run.case)})",
    show=_shown_float,
)
