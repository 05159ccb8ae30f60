"""Lab 02: what is true of the four sums, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from labkit.compare import Mismatch, compare
from labkit.exercises.lab02.sums import NEVER_ENDS, NOT_ANSWERED, SUM_NAMES, Numbers
from labkit.oracles.hints import Condition, not_written_yet, once
from labkit.oracles.lab02.added import (
    all_but_one,
    by_size,
    compensates,
    from_the_largest,
    in_another_dtype,
    in_order,
    in_order_of_another_dtype,
)
from labkit.oracles.lab02.error_bounds import gamma
from labkit.spec import CANNOT_TELL, EXACT, CaseRun, Hint, Oracle, Tolerance


@once
def true_sums(run: CaseRun[Numbers]) -> dict[str, torch.Tensor]:
    """In-order sums as they are; for the other two the exact sum, or the value that every right answer has."""
    x = run.tree["x"]
    exact = torch.tensor(math.fsum(x.tolist()), dtype=x.dtype)
    return {
        "naive_sum": in_order(x),
        "sorted_sum": in_order(by_size(x)),
        # 2/u + 1 and 1 + 1, in whichever way the four are paired; the exact sum rounds to 2/u + 4.
        "pairwise_sum": x[0] if run.case.kind == "ones" and run.case.n == 4 else exact,
        "neumaier_sum": exact if (stored := stored_neumaier(run.case, x)) is None else stored,
    }


def stored_neumaier(case: Numbers, x: torch.Tensor) -> torch.Tensor | None:
    """What one compensation in x's dtype gives, where that is not the exact sum."""
    if case.kind == "levels":
        return torch.zeros((), dtype=x.dtype)  # the 1 is lost twice
    # Each 1 is lost to 1/u and kept in the compensation, until that is as large and stalls as well.
    return 2 * x[0] if case.kind == "ones" and case.n > x[0] + 1 else None


@once
def sum_tolerances(run: CaseRun[Numbers]) -> dict[str, Tolerance]:
    """Higham 2002, (4.4) and (4.6), for in-order and pairwise sums; Ogita, Rump and Oishi 2005 for Neumaier's.

    The expected value is rounded as well, which adds u |sum|.
    """
    case = run.case
    x, n, u = run.tree["x"], case.n, torch.finfo(case.torch_dtype).eps / 2
    total, size = abs(math.fsum(x.tolist())), math.fsum(x.abs().tolist())
    # A magnitude with both signs may be taken in either order.
    tied = bool(torch.isin(x[x > 0], -x[x < 0]).any())
    stored_pairwise = case.kind == "ones" and n == 4
    depth = math.ceil(math.log2(n))
    return {
        "sorted_sum": Tolerance(atol=gamma(n - 1, u) * size) if tied else EXACT,
        "pairwise_sum": EXACT if stored_pairwise else Tolerance(atol=gamma(depth, u) * size + u * total),
        "neumaier_sum": EXACT
        if case.kind == "huge" or stored_neumaier(case, x) is not None
        else Tolerance(atol=2 * u * total + gamma(n - 1, u) ** 2 * size),
    }


def is_blank(total: object) -> bool:
    return isinstance(total, str) and total == NOT_ANSWERED


@once
def first_wrong(run: CaseRun[Numbers]) -> tuple[str, Mismatch] | None:
    """The first function that is written and wrong on this case; a blank one is not wrong."""
    expected, tolerances = true_sums(run), sum_tolerances(run)
    for name in SUM_NAMES:
        total = run.got["sums"][name]
        if not is_blank(total) and (found := compare(expected[name], total, tolerances.get(name, EXACT))):
            return name, found
    return None


def sums_problem(run: CaseRun) -> str | None:
    """What the written functions do wrong, so that the four can be written one after the other."""
    if changed := run.got["changed"]:
        return f"{changed[0]} changed its input x in place"
    wrong = first_wrong(run)
    if wrong is None:
        return None
    name, found = wrong
    if run.got["sums"][name] == NEVER_ENDS:
        return f"{name} called itself until Python gave up (RecursionError)"
    if found.kind != "value":
        return f"{name} returns a wrong {found.kind}: expected {found.expected}, got {found.got}"
    within = f" within {found.tolerance.atol:.3g}" if found.tolerance.atol else ""
    return f"{name} gives {found.got}, expected {found.expected}{within}"


def blank_ones(got: dict) -> list[str]:
    return [name for name in SUM_NAMES if is_blank(got["sums"][name])]


def all_written(runs: Sequence[CaseRun]) -> str | None:
    """Asked when nothing that is written is wrong on any case."""
    blank = [name for name in SUM_NAMES if any(name in blank_ones(run.got) for run in runs)]
    right = [name for name in SUM_NAMES if name not in blank]
    if not blank:
        return None
    return f"right in all cases: {', '.join(right) or 'none'}; not written yet: {', '.join(blank)}"


def is_next(run: CaseRun[Numbers], name: str) -> bool:
    """Whether what is written is right, and `name` is the first that is not."""
    return blank_ones(run.got)[0] == name and not first_wrong(run)


def wrong_sum(name: str, when: Callable[[Numbers, torch.Tensor, torch.Tensor], object]) -> Condition:
    """A diagnosis of the first wrong sum, when it is `name`'s: `when` gets (case, x, what came back)."""
    return if_first(name, lambda run: when(run.case, run.tree["x"], run.got["sums"][name]))


def if_first(name: str, when: Condition) -> Condition:
    """A diagnosis of `name`, where it is the first wrong one. A case in which another one is cannot tell."""

    def diagnose(run: CaseRun[Numbers]) -> object:
        wrong = first_wrong(run)
        return CANNOT_TELL if wrong is None or wrong[0] != name else when(run)

    return diagnose


def any_wrong_sum(when: Callable[[object], object]) -> Condition:
    """A diagnosis of what the first wrong function returned, whichever it is."""

    def diagnose(run: CaseRun[Numbers]) -> object:
        wrong = first_wrong(run)
        return wrong is not None and when(run.got["sums"][wrong[0]])

    return diagnose


def compensation(text: str, *mistakes: str) -> Hint:
    """A hint on neumaier_sum, where what came back is what one of these mistakes makes of x."""
    return Hint(if_first("neumaier_sum", compensates(*mistakes)), text)


def called(run: CaseRun[Numbers]) -> str:
    """The numbers that all four functions were given."""
    case, x = run.case, run.tree["x"].tolist()
    if case.kind == "constant":
        return f"x = torch.full(({case.n},), {case.value}, dtype=torch.{case.dtype})"
    return f"x = [{', '.join(map(_in_words, x[:5]))}{', ...' if len(x) > 5 else ''}], {case.n} numbers in {case.dtype}"


def _in_words(value: float) -> str:
    """Large powers of two as such."""
    power = math.log2(abs(value)) if value else 0.0
    if power > 7 and power == int(power):
        return f"{'-' if value < 0 else ''}2**{int(power)}"
    return f"{value:.6g}"


_OTHER_DTYPE = (
    "{} does not add in x's dtype. The accumulator must have x.dtype, too, and be rounded after each addition: Python "
    "floats are float64, and torch.zeros(()) is float32."
)


SUMS = Oracle(
    id="02-sums",
    judge=(sums_problem,),
    judge_all=(all_written,),
    diagnose=(
        Hint(
            lambda run: bool(run.got["changed"]),
            "A function changed its input x in place, and x belongs to the caller: sort or overwrite a copy. x[0] is "
            "a view of x, so s = x[0] followed by s += v writes into x as well; s = s + v does not.",
        ),
        *not_written_yet(SUM_NAMES, is_next, right="in all cases"),
        Hint(any_wrong_sum(lambda total: total is None), "The function returned None: is a `return` missing?"),
        Hint(
            any_wrong_sum(lambda total: isinstance(total, float | int)),
            "A Python number came back, which is a float64. Keep the accumulator a tensor of x.dtype, and return it.",
        ),
        *(
            Hint(
                wrong_sum(name, lambda case, x, total, order=order: total in all_but_one(order(x))),
                f"{name} leaves the first element out, or the last: range(a, b) ends at b - 1.",
            )
            for name, order in (("naive_sum", lambda x: x), ("sorted_sum", by_size))
        ),
        *(
            Hint(
                wrong_sum(name, lambda case, x, total, order=order: in_order_of_another_dtype(case, order(x), total)),
                _OTHER_DTYPE.format(name),
            )
            for name, order in (("naive_sum", lambda x: x), ("sorted_sum", by_size))
        ),
        Hint(
            wrong_sum("pairwise_sum", in_another_dtype),
            "pairwise_sum is more exact than adding halves in x's dtype can be. Either an accumulator has another "
            "dtype than x (Python floats are float64), or the two parts are not halves.",
        ),
        Hint(wrong_sum("neumaier_sum", in_another_dtype), _OTHER_DTYPE.format("neumaier_sum")),
        Hint(
            wrong_sum("naive_sum", lambda case, x, total: total == in_order(x.flip(0))),
            "naive_sum adds from the last element to the first. The first element comes first.",
        ),
        Hint(
            wrong_sum("naive_sum", lambda case, x, total: total.shape == ()),
            "naive_sum adds the elements from first to last into one accumulator, and does nothing else.",
        ),
        Hint(
            wrong_sum("sorted_sum", lambda case, x, total: total == in_order(x.abs().sort()[0])),
            "sorted_sum added the magnitudes, not the values. Use the magnitudes only to find the order.",
        ),
        Hint(
            wrong_sum("sorted_sum", lambda case, x, total: total == in_order(x.sort()[0])),
            "x was sorted by value, which adds the most negative number first. Sort by magnitude, |x|.",
        ),
        Hint(
            wrong_sum("sorted_sum", lambda case, x, total: total in (in_order(x), from_the_largest(x))),
            "sorted_sum still adds large values first. The smallest magnitude comes first, so that small values "
            "gather before they meet a large one.",
        ),
        Hint(
            wrong_sum("pairwise_sum", lambda case, x, total: total == NEVER_ENDS or CANNOT_TELL),
            "pairwise_sum called itself until Python gave up. A single element needs no splitting: return it. And "
            "split in two halves, so that the depth is log2(n) and not n.",
        ),
        Hint(
            wrong_sum("pairwise_sum", lambda case, x, total: total == in_order(x)),
            "pairwise_sum is still the naive sum: one accumulator meets every element. Sum each half by itself, then "
            "add the two results.",
        ),
        Hint(
            wrong_sum("pairwise_sum", lambda case, x, total: total.shape == ()),
            "The error of pairwise_sum is larger than log2(n) roundings can cause. Is an element lost, or taken "
            "twice, when n is odd? Or is a part of more than one element added in a row?",
        ),
        compensation(
            "This is Kahan's sum, which recovers only what the new term lost. Where the new term is the larger one, "
            "the running sum loses its low bits. Compare the magnitudes, and let the two swap roles.",
            "kahan",
            "never swapped",
        ),
        compensation(
            "Whether s or v is the larger is a question of magnitudes: take abs() of both.",
            "compared by value",
        ),
        compensation(
            "The smaller of the two loses its low bits, so the larger comes first: with |s| >= |v| the loss is (s - "
            "t) + v. Both (v - t) + s and s - (t - v) round on the way.",
            "swapped the wrong way",
        ),
        compensation(
            "The correction has the wrong sign, so it doubles the error. What was lost is (larger - t) + smaller, and "
            "it is added.",
            "negated",
        ),
        compensation(
            "The brackets are in the wrong place: s - (t + v) takes away the term that is to be added. What was lost "
            "is (s - t) + v, from left to right.",
            "other brackets",
            "other brackets in one branch",
        ),
        compensation(
            "The compensation is added to the running sum in every step and kept too, so it counts again and again. "
            "Add it once, at the end.",
            "again and again",
        ),
        Hint(
            wrong_sum("neumaier_sum", lambda case, x, total: total == in_order(x)),
            "This is the naive sum: the correction was always 0, or was never added, or only the last one was kept. "
            "What is lost is (larger - t) + smaller with t = s + v rounded. In an order that cancels on paper, such "
            "as (s + v) - t, it is 0.",
        ),
        Hint(
            wrong_sum("neumaier_sum", lambda case, x, total: total == 2 * in_order(x)),
            "This is twice the naive sum: s was overwritten with t before the correction was computed, so s - t is 0. "
            "The correction needs the s from before.",
        ),
        Hint(
            wrong_sum("neumaier_sum", lambda case, x, total: total.shape == ()),
            "The error is beyond Neumaier's bound, so a correction is inexact, or counted twice.",
        ),
    ),
    call=called,
)
