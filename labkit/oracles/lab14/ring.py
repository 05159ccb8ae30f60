"""Lab 14: what is true of an all-reduce around a ring, and what chunks in the wrong place look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab14.group import Group
from labkit.oracles.hints import once
from labkit.oracles.lab14.four_all_reduces import near_sum, oracle
from labkit.oracles.lab14.sums import OWN_ONLY, READ_TOO_EARLY, outs, shares, total, unit, xs
from labkit.spec import CANNOT_TELL, CaseRun, Hint

Shares = list[list[list[int] | None]]
"""Of each rank's result, by chunk: how often each rank's numbers are in it; None where it is no such sum."""


@once
def chunk_shares(run: CaseRun[Group]) -> Shares:
    """How often each rank's numbers are in each chunk of each result."""
    n = run.case.n_ranks
    parts = [x.reshape(-1).tensor_split(n) for x in xs(run.tree)]
    return [
        [shares([part[i] for part in parts], chunk) for i, chunk in enumerate(out.reshape(-1).tensor_split(n))]
        for out in outs(run.got)
    ]


def by_chunks(holds: Callable[[Shares], Any], n_from: int = 2) -> Callable[[CaseRun[Group]], Any]:
    """A hint's condition on `chunk_shares`, which cannot tell of fewer ranks, of chunks shorter than their number, or
    of bfloat16, whose rounding hides what a short chunk is a sum of."""

    def when(run: CaseRun[Group]) -> Any:
        n, dtype = run.case.n_ranks, run.case.dtype
        short = n < n_from or run.case.n_elements // n < n
        return CANNOT_TELL if short or dtype == "bfloat16" else holds(chunk_shares(run))

    return when


def one_chunk_right(found: Shares) -> bool:
    """Each rank has one chunk of the sum, each another one."""
    n = len(found)
    right = [[index for index, share in enumerate(row) if share == [1] * n] for row in found]
    return sorted(right) == [[index] for index in range(n)]


def only_own_beside(found: Shares) -> bool:
    """What a rank has beside one chunk of the sum are its own numbers."""
    n = len(found)
    return one_chunk_right(found) and all(
        share in ([1] * n, unit(n, rank)) for rank, row in enumerate(found) for share in row
    )


def of_one_rank_each(found: Shares) -> bool:
    """Each chunk holds the numbers of a single rank, and not always of the one that has it."""
    n = len(found)
    return all(share and sum(share) == max(share) == 1 for row in found for share in row) and any(
        share != unit(n, rank) for rank, row in enumerate(found) for share in row
    )


def some_twice(found: Shares) -> bool:
    """In some chunk there are a rank's numbers more than once."""
    return any(share and max(share) > 1 for row in found for share in row)


def rest_wrong(run: CaseRun[Group]) -> Any:
    """Elements are wrong, and only those left over when their number is divided by that of the ranks."""
    case = run.case
    whole = case.n_elements // case.n_ranks * case.n_ranks
    right, close = total(xs(run.tree)).reshape(-1).double(), near_sum(run)
    flat = [out.reshape(-1).double() for out in outs(run.got)]
    fine = [torch.isclose(out, right, rtol=close.rtol, atol=0) for out in flat]
    if not whole and case.n_elements:
        return CANNOT_TELL
    return whole > 0 and all(bool(one[:whole].all()) for one in fine) and not all(bool(one.all()) for one in fine)


def moved_chunks(run: CaseRun[Group]) -> Any:
    """Every rank has all chunks of the sum, and some rank has them in other places."""
    case = run.case
    if case.n_elements % case.n_ranks:
        return CANNOT_TELL
    right, close = total(xs(run.tree)).reshape(-1).double().tensor_split(case.n_ranks), near_sum(run)

    def place(chunk: Tensor) -> int:
        return [torch.allclose(chunk, true, rtol=close.rtol, atol=0) for true in right].index(True)

    found = [[place(chunk) for chunk in out.reshape(-1).double().tensor_split(case.n_ranks)] for out in outs(run.got)]
    return all(sorted(row) == list(range(case.n_ranks)) for row in found)


def ascending(run: CaseRun[Group]) -> Any:
    """The result of a ring whose chunk numbers go up with the steps, wherever what comes is put."""
    n = run.case.n_ranks
    if n < 3 or run.case.n_elements % n or run.case.n_elements < n:
        return CANNOT_TELL
    found, close = torch.stack([out.reshape(-1).double() for out in outs(run.got)]), near_sum(run)
    return any(
        torch.allclose(found, around(run, lambda r, k: r + k, into), rtol=2 * n * close.rtol, atol=1e-9)
        for into in (lambda r, k: r + k - 1, lambda r, k: r + k + 1, lambda r, k: r - k - 1)
    )


Place = Callable[[int, int], int]
"""(rank, step) -> the number of a chunk."""


def around(run: CaseRun[Group], sent: Place, into: Place) -> Tensor:
    """What each rank has, flat and in float64, after two halves in which it sends and fills these chunks."""
    n = run.case.n_ranks
    chunks = [list(x.reshape(-1).double().clone().tensor_split(n)) for x in xs(run.tree)]
    for step in range(2 * (n - 1)):
        messages = [chunks[rank][sent(rank, step) % n] for rank in range(n)]
        for rank in range(n):
            old, come = chunks[rank][into(rank, step) % n], messages[rank - 1]
            chunks[rank][into(rank, step) % n] = old + come if step < n - 1 else come
    return torch.stack([torch.cat(row) for row in chunks])


def too_many_rounds(run: CaseRun[Group]) -> bool:
    """One half or both have a round more than they need."""
    return run.measured["seconds"] in (2 * run.case.n_ranks - 1, 2 * run.case.n_ranks)


REBOUND = (
    "`mine = ...` and `chunks[i] = ...` bind a name or a list entry to a new tensor and leave the old one, a part of "
    "the result, as it was. Write into it with mine += got and mine.copy_(got), or join the list with torch.cat."
)
RING = oracle(
    "ring",
    "A rank may send the tensor twice less two chunks, in its dtype: in each of 2(n-1) rounds one chunk to the next "
    "rank, and never the whole tensor. Cut it with torch.tensor_split into n chunks of nearly the same length.",
    "There should be n-1 rounds that add and n-1 that pass on. In each every rank sends one chunk and receives one.",
    (
        READ_TOO_EARLY,
        Hint(OWN_ONLY.when, f"Every rank returned its own tensor: nothing was added to it. {REBOUND}"),
        Hint(by_chunks(only_own_beside, n_from=3), f"All that a rank has beside its last chunk is its own. {REBOUND}"),
        Hint(
            by_chunks(of_one_rank_each),
            "Each chunk holds the numbers of a single rank. Either what arrived in the first half replaced what was "
            "there (add it: `mine += got`), or the second half begins with the rank's own chunk again (send the one "
            "that came last).",
        ),
        Hint(
            ascending,
            "The chunk numbers run the wrong way. Messages go to rank r + 1, so the chunk that has just come to rank r "
            "has the number before the one that it sent: from step to step the number gets smaller by one.",
        ),
        Hint(
            moved_chunks,
            "All chunks of the sum are there, but on some rank in the wrong places. Chunk i is the i-th part of the "
            "tensor on every rank: join the chunks in the order in which they were cut.",
        ),
        Hint(
            lambda run: too_many_rounds(run) and by_chunks(some_twice)(run),
            "There are too many steps. After n-1 of them each chunk has visited every rank: one more brings it to a "
            "rank whose numbers it has already.",
        ),
        Hint(
            by_chunks(some_twice),
            "In some chunk a rank's tensor is counted twice. In the second half the chunks are complete: replace what "
            "is there instead of adding to it.",
        ),
        Hint(
            by_chunks(one_chunk_right, n_from=3),
            "Every rank has one chunk of the sum, which is the first half. In the second half pass the finished chunks "
            "on, n-1 times, and write them into the tensor: `mine.copy_(got)`, not `mine = got`.",
        ),
        Hint(
            rest_wrong,
            "The elements at the end are wrong, those that are left over when the number of elements is divided by n. "
            "torch.tensor_split gives them to the first chunks.",
        ),
        Hint(
            by_chunks(lambda found: any(share and 0 in share for row in found for share in row)),
            "One chunk has not visited every rank. Only the very first chunk that a rank sends is its own: in each "
            "further step, also where the second half begins, send the one that arrived in the step before.",
        ),
    ),
)
