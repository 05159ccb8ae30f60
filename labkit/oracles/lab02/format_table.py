"""Lab 02: what is true of the limits of a format, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.exercises.lab02.format_case import FormatCase
from labkit.oracles.lab02.library import HARD_CODED, known, limits_of
from labkit.spec import CaseRun, Hint, Oracle


def limit(when: Callable[[CaseRun[FormatCase]], object]) -> Callable[[CaseRun[FormatCase]], object]:
    """A diagnosis of 02-format-table: (case, right limits, what came back)."""
    return lambda run: when(run.case, limits_of(run.case), run.got)


def off_by_two(name: str, true: dict, got: dict) -> bool:
    """Whether this limit is twice or half of what it should be."""
    return got[name] in (true[name] / 2, true[name] * 2)


FORMAT_TABLE = Oracle(
    id="02-format-table",
    expect=lambda run: limits_of(run.case),
    diagnose=(
        Hint(
            lambda run: not isinstance(run.got, dict),
            'Return a dict with four names: {"eps": ..., "max": ..., "smallest_normal": ..., "smallest_subnormal": '
            "...}.",
        ),
        Hint(lambda run: not known(run.case), HARD_CODED),
        Hint(
            limit(lambda case, true, got: got["eps"] == true["eps"] / 2),
            "eps is the gap between 1 and the next larger number; half of it, the largest relative rounding error, is "
            "the unit roundoff.",
            everywhere=False,
        ),
        Hint(
            limit(lambda case, true, got: got["eps"] == true["eps"] * 2),
            "eps is one bit too wide: the implicit leading 1 is not among the mantissa bits, so the last of them is "
            "worth 2**-mantissa_bits at 1.0.",
            everywhere=False,
        ),
        Hint(
            limit(
                lambda case, true, got: (
                    off_by_two("max", true, got)
                    and got["max"] * got["smallest_normal"] == true["max"] * true["smallest_normal"]
                )
            ),
            "The bias is off by one, which moves both ends of the range: it is 2**(exponent_bits - 1) - 1.",
            everywhere=False,
        ),
        Hint(
            limit(
                lambda case, true, got: (
                    true["max"] / 2 < got["max"] < true["max"]
                    and (not case.finite_only or math.frexp(got["max"])[0] == 0.5)
                )
            ),
            "The largest number has all mantissa bits set, or with finite_only all but the last: it is almost twice "
            "its power of two.",
            everywhere=False,
        ),
        Hint(
            limit(lambda case, true, got: case.finite_only and got["max"] < true["max"]),
            "With finite_only the highest exponent holds numbers too; only its last pattern is taken, by NaN.",
            everywhere=False,
        ),
        Hint(
            limit(lambda case, true, got: case.finite_only and true["max"] < got["max"] < 1.5 * true["max"]),
            "The pattern with all ones is NaN: the largest number is one pattern below it.",
            everywhere=False,
        ),
        Hint(
            limit(lambda case, true, got: not case.finite_only and got["max"] > 1.5 * true["max"]),
            "The exponent of all ones is kept for infinity and NaN: the largest number has the exponent below it.",
            everywhere=False,
        ),
        Hint(
            limit(lambda case, true, got: off_by_two("smallest_normal", true, got)),
            "The smallest normal number has an exponent field of 1 (field 0 belongs to the subnormals): 2**(1 - bias).",
            everywhere=False,
        ),
        Hint(
            limit(lambda case, true, got: got["smallest_subnormal"] == true["smallest_normal"]),
            "The smallest subnormal is the pattern 0...01: the last mantissa bit alone.",
            everywhere=False,
        ),
        Hint(
            limit(
                lambda case, true, got: (
                    got["eps"] == true["eps"] and got["smallest_subnormal"] != true["smallest_subnormal"]
                )
            ),
            "The subnormals divide the gap from 0 to the smallest normal number into 2**mantissa_bits equal steps.",
            everywhere=False,
        ),
    ),
)
