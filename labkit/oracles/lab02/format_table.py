"""Lab 02: what is true of the limits of a format, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.exercises.lab02.format_case import FormatCase
from labkit.oracles.lab02.library import HARD_CODED, as_format, known, limits_of
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


def limit(
    name: str, when: Callable[[FormatCase, dict[str, float], dict[str, float]], object]
) -> Callable[[CaseRun[FormatCase]], object]:
    """A diagnosis of a wrong `name`, asked with (case, right limits, what came back); no word where it is right."""

    def diagnose(run: CaseRun[FormatCase]) -> object:
        true, got = run.expected, run.got
        return CANNOT_TELL if got[name] == true[name] else when(run.case, true, got)

    return diagnose


def off_by_two(name: str, true: dict, got: dict) -> bool:
    """Whether this limit is twice or half of what it should be."""
    return got[name] in (true[name] / 2, true[name] * 2)


def is_whole_number_rule(case: FormatCase, true: dict, got: dict) -> bool:
    """Whether the largest number is a power of two less 1, as that of an integer type, or that power itself."""
    return any(math.frexp(got["max"] + one)[0] == 0.5 for one in (0, 1)) and (
        case.finite_only or got["max"] <= 2.0 ** math.frexp(true["max"])[1]
    )


def ratio(run: CaseRun[FormatCase]) -> str | None:
    """How far off the first wrong limit is, in units of the right one."""
    wrong = [name for name, value in run.expected.items() if run.got[name] != value]
    return f"your {wrong[0]} is {run.got[wrong[0]] / run.expected[wrong[0]]:.9g} times the right one" if wrong else None


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
            limit("eps", lambda case, true, got: got["eps"] == true["eps"] / 2),
            "eps is the gap between 1 and the next larger number. Half of it, the largest relative error of one "
            "rounding, is the unit roundoff.",
        ),
        Hint(
            limit("eps", lambda case, true, got: got["eps"] == true["eps"] * 2),
            "eps is one bit too wide. The implicit leading 1 is not one of the mantissa bits, so the last of them is "
            "worth 2**-mantissa_bits at 1.0.",
        ),
        Hint(
            limit("eps", lambda case, true, got: got["eps"] == 2.0**-case.fmt.exponent_bits),
            "This eps comes from the exponent bits. The mantissa bits tell how far two neighbours are apart, the "
            "exponent bits how far the range reaches.",
        ),
        Hint(
            limit(
                "max",
                lambda case, true, got: (
                    off_by_two("max", true, got)
                    and got["max"] * got["smallest_normal"] == true["max"] * true["smallest_normal"]
                ),
            ),
            "The bias is off by one, which moves both ends of the range. It is 2**(exponent_bits - 1) - 1.",
        ),
        Hint(
            limit(
                "max",
                lambda case, true, got: (
                    true["max"] / 2 < got["max"] < true["max"]
                    and (not case.finite_only or math.frexp(got["max"])[0] == 0.5)
                ),
            ),
            "The largest number has all mantissa bits set, or with finite_only all but the last, so it is almost "
            "twice its power of two.",
        ),
        Hint(
            limit("max", lambda case, true, got: case.finite_only and got["max"] < true["max"]),
            "With finite_only the highest exponent holds numbers too. Only its last pattern is taken, by NaN.",
        ),
        Hint(
            limit("max", lambda case, true, got: case.finite_only and true["max"] < got["max"] < 1.5 * true["max"]),
            "The pattern with all ones is NaN. The largest number is one pattern below it.",
        ),
        Hint(
            limit("max", lambda case, true, got: not case.finite_only and got["max"] > 1.5 * true["max"]),
            "The exponent of all ones is reserved for infinity and NaN. The largest number has the exponent below it.",
        ),
        Hint(
            limit("max", is_whole_number_rule),
            "2**n - 1 is the largest number of an integer type. The largest float lies one step below a power of two, "
            "and a step there is eps times its own power of two.",
        ),
        Hint(
            limit("smallest_normal", lambda case, true, got: got["smallest_normal"] < 0),
            "The smallest normal number is the one closest to zero, 2**(1 - bias), not the most negative one.",
        ),
        Hint(
            limit("smallest_normal", lambda case, true, got: off_by_two("smallest_normal", true, got)),
            "The smallest normal number has an exponent field of 1, because field 0 belongs to the subnormals. It is "
            "2**(1 - bias).",
        ),
        Hint(
            limit("smallest_subnormal", lambda case, true, got: got["smallest_subnormal"] == true["smallest_normal"]),
            "The smallest subnormal is the pattern 0...01: the last mantissa bit alone.",
        ),
        Hint(
            limit("smallest_subnormal", lambda case, true, got: got["eps"] == true["eps"]),
            "The subnormals divide the gap from 0 to the smallest normal number into 2**mantissa_bits equal steps.",
        ),
    ),
    fact=ratio,
    call=lambda run: f"format_limits({as_format(run.case)})",
)
