"""Lab 02: what is true of values rounded into a format, and the hint for each of the usual mistakes."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.format_case import FormatCase
from labkit.oracles.lab02.encoded import Encoded, encoded, everywhere
from labkit.oracles.lab02.library import HARD_CODED, fields, known, limits_of, patterns_of, values_of
from labkit.spec import CaseRun, Hint, Oracle

PAST_INFINITY = (
    "Nothing holds back what is too large: its pattern runs past that of infinity, into the NaN patterns or out of the "
    "format's bits. Bound the pattern by that of infinity."
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
            "One pattern for each element: the result has the shape of x, which may be any.",
        ),
        Hint(lambda run: not known(run.case), HARD_CODED),
        Hint(
            encoded(Encoded.zero_from_frexp),
            "Zero has no exponent of its own: torch.frexp says 0 for it, the exponent of numbers from 0.5 to 1. Hold "
            "the size above 0 before, at some 2**-200 (and below infinity, where frexp says 0 too).",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.first_is(e.nan & ~e.got_value.isinf())),
            "NaN is wrong: comparisons mean nothing for it, nor does its cast to int64. Put a NaN pattern in where "
            "x.isnan(), at the end.",
            everywhere=False,
        ),
        Hint(
            encoded(Encoded.negated),
            "Patterns are not negative: the sign is the top bit of the pattern, set or not, above the exponent.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.only(e.x.signbit()) and torch.equal(e.got | e.sign * e.wrong, e.true)),
            "The sign bit is missing, or missing for -0.0: `x < 0` is false for it, torch.signbit is not.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.only(e.nan) and e.got_value[e.wrong].isinf().any() and not (e.got < 0).any()),
            "NaN must stay NaN, whatever its payload: cut off or rounded, its bits can leave infinity or run into the "
            "sign.",
            everywhere=False,
        ),
        Hint(
            encoded(Encoded.rounded_twice),
            "This rounds twice, first to a 16-bit format: what becomes a tie on the way can go to the wrong side. "
            "Round the float32 itself.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.only(e.x.isinf() | e.nan) and everywhere(e.got < 0, e.wrong & e.x.isinf())),
            "Infinity is wrong: torch.frexp finds no exponent in it, and its cast to int64 gives -2**63. Bound the "
            "size before, to some 2**200.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.case.finite_only and e.only(e.large | e.nan)),
            "Overflow by the rule of this format: with finite_only there is no infinity, so that whatever is too "
            "large becomes the largest number, and only NaN becomes NaN.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.only(e.large) and (e.got_value[e.wrong].abs() == limits_of(e.case)["max"]).all()),
            "Overflow by the rule of this format: an IEEE format rounds to infinity from half a step above its "
            "largest number on; it does not saturate.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.only(e.large | e.nan) and (e.large & e.no_pattern).any()),
            PAST_INFINITY,
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.only(e.large | e.nan)),
            "Right within the range, wrong above it: what becomes of a carry out of the largest exponent, of "
            "infinity and of numbers just above the largest?",
            everywhere=False,
        ),
        Hint(
            encoded(
                lambda e: e.only(e.small) and (e.got_value[e.wrong] == 0).all() and (e.true_value[e.wrong] != 0).any()
            ),
            "Small values were flushed to zero: below the smallest normal number the format still has its subnormals.",
            everywhere=False,
        ),
        Hint(
            encoded(Encoded.truncated),
            "This truncates: cutting the extra bits off rounds toward zero, not to the nearest pattern.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.first_is(e.large & e.no_pattern)),
            PAST_INFINITY,
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.exponent_off_by(1)),
            "Every exponent field is one too large, and every value doubled. Is the bias 2**(exponent_bits - 1) - 1? "
            "And steps that count the leading 1 as well already bring a 1 into the exponent field.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.exponent_off_by(-1)),
            "Every exponent field is one too small, and every value halved. The bias is 2**(exponent_bits - 1) - 1; "
            "then check where you take one off.",
            everywhere=False,
        ),
        Hint(
            encoded(Encoded.fraction_below_one),
            "torch.frexp returns a fraction in [0.5, 1), the format wants one in [1, 2): the exponent of a number "
            "between 2**p and 2**(p+1) is p, and frexp says p + 1.",
            everywhere=False,
        ),
        Hint(
            encoded(Encoded.carry_lost),
            "The carry into the exponent is lost: a mantissa that rounds up to 2**mantissa_bits is the next power of "
            "two. Add it to the shifted exponent; `|` does not carry.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.inside.any() and (e.tie == e.inside).all() and (e.got > e.true)[e.inside].all()),
            "Ties are rounded up: a value exactly half-way between two patterns goes to the one whose last bit is 0.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.inside.any() and (e.tie == e.inside).all()),
            "Everything is rounded to a nearest pattern, but ties the wrong way: half-way, the pattern whose last bit "
            "is 0 wins.",
            everywhere=False,
        ),
        Hint(
            encoded(lambda e: e.only(e.small | e.large | e.nan) and (e.wrong & e.small & (e.x != 0)).any()),
            "The normal numbers are right, the small ones not: all subnormals have the spacing of the smallest normal "
            "number, so that its exponent is the least that may be used.",
            everywhere=False,
        ),
    ),
    show=_shown_float,
)
