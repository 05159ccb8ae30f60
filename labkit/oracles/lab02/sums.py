"""Lab 02: what is true of the four sums and of merging the smallest, and what the usual mistakes look like."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from functools import reduce
from operator import add

import torch

from labkit.compare import compare
from labkit.exercises.lab02.sums import NEVER_ENDS, NOT_ANSWERED, SUM_NAMES, Merging, Numbers
from labkit.spec import EXACT, Hint, Oracle, Tolerance

BRUTE_FORCE_N = 1000


def gamma(n: int, u: float) -> float:
    """gamma_n = n u / (1 - n u), which bounds the relative error of n roundings (Higham 2002, lemma 3.1)."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


def in_order(x: torch.Tensor) -> torch.Tensor:
    """x[0] + x[1] + ..., each sum rounded to x's dtype."""
    return reduce(torch.add, x.unbind())


def true_sums(case: Numbers, tree: dict) -> dict[str, torch.Tensor]:
    """In-order sums as they are; for the other two the exact sum, or the value that every right answer has."""
    x = tree["x"]
    exact = torch.tensor(math.fsum(x.tolist()), dtype=x.dtype)
    return {
        "naive_sum": in_order(x),
        "sorted_sum": in_order(x[x.abs().argsort()]),
        # 2/u + 1 and 1 + 1, in whichever way the four are paired; the exact sum rounds to 2/u + 4.
        "pairwise_sum": x[0] if case.kind == "ones" and case.n == 4 else exact,
        # One compensation in x's dtype loses the 1 as well.
        "neumaier_sum": torch.zeros((), dtype=x.dtype) if case.kind == "levels" else exact,
    }


def sum_tolerances(case: Numbers, tree: dict) -> dict[str, Tolerance]:
    """Higham 2002, (4.4) and (4.6), for in-order and pairwise sums; Ogita, Rump and Oishi 2005 for Neumaier's.

    The expected value is rounded as well, which adds u |sum|.
    """
    x, n, u = tree["x"], case.n, torch.finfo(case.torch_dtype).eps / 2
    total, size = abs(math.fsum(x.tolist())), math.fsum(x.abs().tolist())
    # A magnitude with both signs may be taken in either order.
    tied = bool(torch.isin(x[x > 0], -x[x < 0]).any())
    stored_pairwise = case.kind == "ones" and n == 4
    depth = math.ceil(math.log2(n))
    return {
        "sorted_sum": Tolerance(atol=gamma(n - 1, u) * size) if tied else EXACT,
        "pairwise_sum": EXACT if stored_pairwise else Tolerance(atol=gamma(depth, u) * size + u * total),
        "neumaier_sum": EXACT
        if case.kind in ("levels", "huge")
        else Tolerance(atol=2 * u * total + gamma(n - 1, u) ** 2 * size),
    }


def from_the_largest(x: torch.Tensor) -> torch.Tensor:
    return in_order(x[x.abs().argsort(descending=True)])


def wrong_sum(name: str, when: Callable[[Numbers, torch.Tensor, torch.Tensor], object]) -> Callable:
    """A diagnosis of the first wrong sum, when it is `name`'s: `when` gets (case, x, what came back)."""

    def diagnose(case: Numbers, tree: dict, got: dict) -> object:
        expected, tolerances = true_sums(case, tree), sum_tolerances(case, tree)
        bad = next(key for key in SUM_NAMES if compare(expected[key], got[key], tolerances.get(key, EXACT)))
        return bad == name and when(case, tree["x"], got[name])

    return diagnose


def too_good(case: Numbers, x: torch.Tensor, total: torch.Tensor) -> bool:
    """More exact than sums in x's dtype are, or of a wider dtype."""
    exact = torch.tensor(math.fsum(x.tolist()), dtype=torch.float64)
    return total.dtype != x.dtype or bool(total == exact.to(x.dtype))


def wrong_way(case: Numbers, x: torch.Tensor, total: torch.Tensor) -> bool:
    """The correction of the naive sum points away from the exact one."""
    naive = in_order(x).item()
    wanted, applied = math.fsum(x.tolist()) - naive, total.item() - naive
    return wanted * applied < 0 and 0.4 < abs(applied / wanted) < 2.5


def is_kind(*kinds: str) -> Callable[[Numbers, torch.Tensor, torch.Tensor], bool]:
    return lambda case, x, total: case.kind in kinds


SUMS = Oracle(
    id="02-sums",
    expect=true_sums,
    tolerance=sum_tolerances,
    diagnose=(
        Hint(
            lambda case, tree, got: "changed_by" in got,
            "A function changed its input x in place. x belongs to the caller: sort or overwrite a copy.",
        ),
        *(
            Hint(
                wrong_sum(name, lambda case, x, total: total == NOT_ANSWERED),
                f"{name} has not been written yet; what stands before it is right on this case.",
            )
            for name in SUM_NAMES
        ),
        Hint(
            wrong_sum("pairwise_sum", too_good),
            "pairwise_sum is more exact here than halves added in x's dtype: either the accumulator is wider (Python "
            "floats are float64), or the two parts are not halves.",
        ),
        *(
            Hint(
                wrong_sum(name, too_good),
                f"{name} adds in a wider format than x has. The accumulator must have x.dtype as well, rounded after "
                "every addition: Python floats are float64, torch.zeros(()) is float32.",
            )
            for name in SUM_NAMES
        ),
        Hint(
            wrong_sum("naive_sum", lambda case, x, total: total.shape == ()),
            "naive_sum adds the elements from first to last into one accumulator, and does nothing else.",
        ),
        Hint(
            wrong_sum("sorted_sum", lambda case, x, total: total == in_order(x.abs().sort()[0])),
            "The magnitudes were added, not the values: use the magnitudes only to find the order.",
        ),
        Hint(
            wrong_sum("sorted_sum", lambda case, x, total: case.kind != "ones" and total == in_order(x.sort()[0])),
            "x was sorted by value, which adds the most negative number first. Sort by magnitude, |x|.",
        ),
        Hint(
            wrong_sum("sorted_sum", lambda case, x, total: total in (in_order(x), from_the_largest(x))),
            "Large values were still added first. The smallest magnitude comes first, so that small values gather "
            "before they meet a large one.",
        ),
        Hint(
            wrong_sum("pairwise_sum", lambda case, x, total: total == NEVER_ENDS),
            "pairwise_sum called itself until Python gave up. A single element needs no splitting: return it. And "
            "split in two halves, so that the depth is log2(n) and not n.",
        ),
        Hint(
            wrong_sum("pairwise_sum", lambda case, x, total: total == in_order(x)),
            "This is the naive sum: one accumulator still meets every element. Sum each half by itself, then add the "
            "two results.",
        ),
        Hint(
            wrong_sum("pairwise_sum", lambda case, x, total: total.shape == ()),
            "The error is larger than log2(n) roundings can make: is an element lost, or taken twice, when n is odd?",
        ),
        Hint(
            wrong_sum("neumaier_sum", lambda case, x, total: total == in_order(x) and case.kind in ("levels", "huge")),
            "This is Kahan's sum: it recovers what the new term lost, but here the new term is larger and the running "
            "sum loses its low bits. Compare the magnitudes, and let the two swap roles.",
        ),
        Hint(
            wrong_sum("neumaier_sum", lambda case, x, total: total == in_order(x) and case.kind != "opposite"),
            "This is the naive sum: the correction was always 0, or was never added. What is lost is (larger - t) + "
            "smaller with t = s + v rounded; in any order that cancels on paper, such as (s + v) - t, it is 0.",
        ),
        Hint(
            wrong_sum("neumaier_sum", wrong_way),
            "The correction has the wrong sign: it doubles the error. What was lost is (larger - t) + smaller, and it "
            "is added.",
        ),
        Hint(
            wrong_sum("neumaier_sum", lambda case, x, total: total.shape == ()),
            "The error is beyond Neumaier's bound: a correction is inexact. Whether s or v is the larger is a question "
            "of magnitudes: take abs() of both.",
        ),
    ),
    show=lambda case, tree, index: f"x = {shorten(tree['x'].tolist())}",
)


def shorten(values: list[float]) -> str:
    """The first few numbers of a list."""
    texts = [f"{value:.6g}" for value in values[:5]]
    return f"[{', '.join(texts)}{', ...' if len(values) > 5 else ''}]"


def merge_by_definition(values: list[float]) -> float:
    """Look for the two smallest among all, again and again: O(n^2), for short lists."""
    parts = list(values)
    while len(parts) > 1:
        smallest = min(parts)
        parts.remove(smallest)
        second = min(parts)
        parts.remove(second)
        parts.append(smallest + second)
    return parts[0]


def true_merge(case: Merging, tree: dict) -> dict[str, object]:
    values = tree["values"].tolist()
    return {
        "out": merge_by_definition(values) if case.n <= BRUTE_FORCE_N else math.fsum(values),
        "unchanged": True,
    }


def merge_tolerances(case: Merging, tree: dict) -> dict[str, Tolerance]:
    """Exact for short lists. Else u times all partial sums, which are at most (log2(n) + 1) times the total."""
    if case.n <= BRUTE_FORCE_N:
        return {}
    u = torch.finfo(torch.float64).eps / 2
    return {"out": Tolerance(atol=gamma(math.ceil(math.log2(case.n)) + 2, u) * float(tree["values"].sum()))}


def merged(when: Callable[[list[float], float], object]) -> Callable[[Merging, dict, dict], object]:
    """A diagnosis of a wrong result on the list where every mistake has other bits: (values, what came back)."""

    def diagnose(case: Merging, tree: dict, got: dict) -> object:
        values = tree["values"].tolist()
        return case.kind == "written" and got["out"] != merge_by_definition(values) and when(values, got["out"])

    return diagnose


def from_the_front(values: list[float]) -> float:
    """The lecture's loop: the first two of a list that it takes to be sorted, their sum inserted in order."""
    parts = list(values)
    while len(parts) > 1:
        bisect.insort(parts, parts.pop(0) + parts.pop(0))
    return parts[0]


def from_the_back(values: list[float]) -> float:
    """The two largest each time, which is one accumulator that starts with the largest."""
    return reduce(add, sorted(values, reverse=True))


MERGE_SMALLEST = Oracle(
    id="02-merge-smallest",
    expect=true_merge,
    tolerance=merge_tolerances,
    diagnose=(
        Hint(
            merged(lambda values, out: out == from_the_front(values)),
            "The list was taken to be sorted, and it is not: the first two are not the two smallest until it has been "
            "put in order once.",
        ),
        Hint(
            merged(lambda values, out: out == from_the_back(values)),
            "The two largest were merged each turn, not the two smallest.",
        ),
        Hint(
            merged(lambda values, out: out == reduce(add, sorted(values))),
            "The values were sorted once and added in a row. The sum of two must go back among the rest, where others "
            "may be smaller than it.",
        ),
        Hint(
            merged(lambda values, out: out == reduce(add, values)),
            "The values were added in the order in which they came. Each turn takes the two smallest of what is left.",
        ),
        Hint(
            lambda case, tree, got: got["unchanged"] is False,
            "The caller's list was changed: heapify, sort and pop work in place, so give them a copy.",
        ),
    ),
    show=lambda case, tree, index: f"values = {tree['values'][:4].tolist()}",
)
