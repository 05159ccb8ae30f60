"""Lab 02: what is true of always adding the two smallest, and what the usual mistakes look like."""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable
from functools import reduce
from operator import add

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.merge_smallest import WRITTEN, Merging
from labkit.oracles.lab02.error_bounds import gamma, shorten
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

BRUTE_FORCE_N = 1000


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


def true_merge(run: CaseRun[Merging]) -> dict[str, object]:
    values = run.tree["values"].tolist()
    return {"out": merge_by_definition(values) if run.case.n <= BRUTE_FORCE_N else math.fsum(values)}


def merge_tolerances(run: CaseRun[Merging]) -> dict[str, Tolerance]:
    """Exact for short lists. Else u times all partial sums, which are at most (log2(n) + 1) times the total."""
    if run.case.n <= BRUTE_FORCE_N:
        return {}
    u = torch.finfo(torch.float64).eps / 2
    return {"out": Tolerance(atol=gamma(math.ceil(math.log2(run.case.n)) + 2, u) * float(run.tree["values"].sum()))}


def merged(when: Callable[[list[float], float], object]) -> Callable[[CaseRun[Merging]], object]:
    """A diagnosis of a wrong result: (values, what came back). A right one, and a long list, cannot tell."""

    def diagnose(run: CaseRun[Merging]) -> object:
        if run.case.n > BRUTE_FORCE_N or run.got["out"] == run.expected["out"]:
            return CANNOT_TELL
        return when(run.tree["values"].tolist(), run.got["out"])

    return diagnose


def apart(run: CaseRun[Merging]) -> float:
    """The relative error."""
    return abs(run.got["out"] - run.expected["out"]) / run.expected["out"]


def far_off(run: CaseRun[Merging]) -> str:
    """How far off, in units of the last place of the right sum."""
    right = run.expected["out"]
    return (
        f"off by {apart(run):.2g} of the sum, or {abs(run.got['out'] - right) / math.ulp(right):.3g} x its last place"
    )


def from_the_front(values: list[float]) -> float:
    """The lecture's loop: the first two of a list that it takes to be sorted, their sum inserted in order."""
    parts = list(values)
    while len(parts) > 1:
        bisect.insort(parts, parts.pop(0) + parts.pop(0))
    return parts[0]


def from_the_back(values: list[float]) -> float:
    """The two largest each time, which is one accumulator that starts with the largest."""
    return reduce(add, sorted(values, reverse=True))


def level_by_level(values: list[float]) -> list[float]:
    """Neighbours in a sorted list added in pairs, then the sums in pairs, sorted again between the levels or not."""
    again, once = sorted(values), sorted(values)
    while len(again) > 1:
        again, once = sorted(_in_pairs(again)), _in_pairs(once)
    return [again[0], once[0]]


def _in_pairs(values: list[float]) -> list[float]:
    return [sum(values[i : i + 2]) for i in range(0, len(values), 2)]


def in_float32(values: list[float]) -> list[float]:
    return torch.tensor(values, dtype=torch.float32).tolist()


def without_heapify(values: list[float]) -> list[float]:
    """heappop twice and heappush, or heappop and heapreplace, on a list that is no heap yet."""
    pushed, replaced = list(values), list(values)
    while len(pushed) > 1:
        heapq.heappush(pushed, heapq.heappop(pushed) + heapq.heappop(pushed))
        heapq.heapreplace(replaced, heapq.heappop(replaced) + replaced[0])
    return [pushed[0], replaced[0]]


def never_shorter(values: list[float]) -> list[float]:
    """n - 1 times heapreplace(heap, heap[0] + heap[1]), which keeps its length: its first entry, largest and sum."""
    heap = list(values)
    heapq.heapify(heap)
    for _ in range(len(values) - 1):
        heapq.heapreplace(heap, heap[0] + heap[1])
    return [heap[0], max(heap), sum(heap)]


def list_untouched(run: CaseRun) -> str | None:
    return None if inputs_untouched(run) is None else "the caller's list was changed"


list_untouched.hint = "The caller's list was changed: heapify, sort and pop work in place, so give them a copy."


def show_values(run: CaseRun[Merging], index: tuple[int, ...] | None) -> str | None:
    if run.case.kind in WRITTEN:
        return "each of the values is a few last bits larger than it looks"
    return None


MERGE_SMALLEST = Oracle(
    id="02-merge-smallest",
    expect=true_merge,
    tolerance=merge_tolerances,
    judge=(list_untouched,),
    diagnose=(
        # First, because it goes wrong in few lists, and in so few another order may end in the same bits.
        Hint(
            merged(lambda values, out: out in level_by_level(values)),
            "The sorted values were added in pairs, level by level. After each addition the two smallest may be "
            "others, because the sums made so far are among them.",
        ),
        Hint(
            merged(lambda values, out: out == from_the_front(values)),
            "The list was taken to be sorted, and it is not. The first two are not the two smallest until it has been "
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
            merged(lambda values, out: out in without_heapify(values)),
            "heapq was used on a list that is no heap yet, and its functions take the order for granted. Put the list "
            "in order once before the loop.",
        ),
        Hint(
            merged(lambda values, out: out in never_shorter(values)),
            "Each turn must leave one entry less. heapreplace takes the smallest away and puts the sum in, so the "
            "second smallest has to be popped before. It need not be h[1] either.",
        ),
        Hint(
            merged(lambda values, out: out == math.fsum(values)),
            "This is the exact sum, rounded once, and not what this order of additions gives. Each sum of two has to "
            "be rounded to a float as it is made.",
        ),
        Hint(
            merged(lambda values, out: out == merge_by_definition(in_float32(values))),
            "The values lost digits on the way, as in float32. Stay with Python's floats, which have 53 bits.",
        ),
        Hint(
            lambda run: 0 < apart(run) <= 1e-12,
            "Only the last bits differ, so the order of the additions does. Each turn adds the two smallest of all "
            "that is left, and the sums made so far are among them.",
        ),
        Hint(
            lambda run: apart(run) > 1e-4 or CANNOT_TELL,
            "Values were lost, or counted twice. Each turn takes two away and puts their sum in, until one is left.",
        ),
    ),
    fact=far_off,
    axis="lists in which another order of the additions ends in other last bits",
    call=lambda run: (
        f"merge_smallest([{shorten(run.tree['values'].tolist(), 10)[1:-1]}])"
        + (f" of {run.case.n:,} values" if run.case.n > 10 else "")
    ),
    show=show_values,
)
