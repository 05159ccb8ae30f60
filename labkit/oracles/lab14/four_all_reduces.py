"""Lab 14: what is true of an all-reduce, in whichever of the four ways it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from labkit.exercises.lab14.group import Group
from labkit.oracles.lab14.counts import cost, least_total
from labkit.oracles.lab14.sums import (
    ERRORS,
    PROPERTIES,
    SUM_HINTS,
    by_shares,
    closeness,
    have_sum,
    over_the_wire,
    total,
    xs,
)
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle, Tolerance


def sum_on_all(run: CaseRun[Group]) -> dict:
    """The sum, on every rank."""
    return {"ranks": [{"out": total(xs(run.tree))}] * run.case.n_ranks}


def near_sum(run: CaseRun[Group]) -> Tolerance:
    """n terms of one sign, added in any order."""
    return closeness(run.case.n_ranks, getattr(torch, run.case.dtype))


def ranks_in_words(n: int) -> str:
    """ "4 ranks", "1 rank"."""
    return f"{n} rank{'s' * (n != 1)}"


def of_wrong_values(hint: Hint) -> Hint:
    """The same, where some value is wrong: the traffic of right values has hints of its own."""

    def when(run: CaseRun[Group]) -> object:
        return CANNOT_TELL if all(have_sum(run)) else hint.when(run)

    return replace(hint, when=when)


def oracle(
    algorithm: str,
    bytes_hint: str,
    rounds_hint: str,
    diagnose: tuple[Hint, ...] = (),
    errors: Mapping[str, str] | None = None,
) -> Oracle:
    """The oracle of one way to all-reduce. Its own hints come before those for any all-reduce.

    errors: hints on exceptions, by a part of their text.
    """

    def limit(name: str) -> Callable[[CaseRun[Group]], int]:
        # A lone rank sends nothing, and can send nothing to itself.
        return lambda run: max(getattr(cost(algorithm, run.case), name), 1)

    return Oracle(
        id=f"14-{algorithm}",
        call=lambda run: (
            f"{algorithm}_all_reduce(comm, x) on {ranks_in_words(run.case.n_ranks)}, x of {run.case.dtype} with shape "
            f"{run.case.shape}"
        ),
        expect=sum_on_all,
        tolerance=near_sum,
        judge=(*PROPERTIES, *over_the_wire(lambda case: least_total(case.n_ranks, case.n_bytes))),
        budgets=(
            Budget("bytes_sent", limit("bytes_sent"), bytes_hint),
            Budget("bytes_total", limit("bytes_total"), bytes_hint),
            Budget("seconds", limit("rounds"), rounds_hint, unit="rounds"),
            Budget("messages", limit("messages"), "A rank sends more messages than it has to."),
        ),
        errors={**(errors or {}), **ERRORS},
        diagnose=tuple(of_wrong_values(hint) for hint in (*diagnose, *SUM_HINTS)),
    )


@by_shares
def beyond_the_power_of_two(found: list[list[int]]) -> bool:
    """Only ranks from the largest power of two on are missing from a sum, or have none themselves."""
    n = len(found)
    inner = 2 ** (n.bit_length() - 1)
    inside_fine = all(share[:inner] == [1] * inner for share in found[:inner])
    return inner < n and inside_fine and found != [[1] * n] * n


def some_have_sum(run: CaseRun[Group]) -> bool:
    """Rank 0 has the sum, and some others do, and some do not."""
    first, *others = have_sum(run)
    return first and any(others) and not all(others)
