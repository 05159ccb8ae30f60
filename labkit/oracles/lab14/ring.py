"""Lab 14: what is true of an all-reduce around a ring, and what chunks in the wrong place look like."""

from __future__ import annotations

import torch

from labkit.exercises.lab14.group import Group
from labkit.oracles.lab14.four_all_reduces import near_sum, oracle
from labkit.oracles.lab14.sums import (
    outs,
    shares,
    total,
    xs,
)
from labkit.spec import CaseRun, Hint


def wrong_chunks(run: CaseRun[Group]) -> list[list[bool]]:
    """Of each rank's result, which of the n chunks of torch.tensor_split are not the sum."""
    right, close = total(xs(run.tree)).reshape(-1), near_sum(run)
    return [
        [
            not torch.allclose(mine.double(), true.double(), rtol=close.rtol, atol=0)
            for mine, true in zip(out.reshape(-1).tensor_split(run.case.n_ranks), right.tensor_split(run.case.n_ranks))
        ]
        for out in outs(run.got)
    ]


def one_chunk_right(run: CaseRun[Group]) -> bool:
    """Each rank has one chunk of the sum, each another one."""
    wrong = wrong_chunks(run)
    right = [[index for index, bad in enumerate(row) if not bad] for row in wrong]
    return run.case.n_ranks > 2 and sorted(right) == [[index] for index in range(run.case.n_ranks)]


def rest_wrong(run: CaseRun[Group]) -> bool:
    """Elements are wrong, and only those left over when their number is divided by that of the ranks."""
    whole = run.case.n_elements // run.case.n_ranks * run.case.n_ranks
    right, close = total(xs(run.tree)).reshape(-1).double(), near_sum(run)
    flat = [out.reshape(-1).double() for out in outs(run.got)]
    fine = [torch.isclose(out, right, rtol=close.rtol, atol=0) for out in flat]
    return whole > 0 and all(bool(one[:whole].all()) for one in fine) and not all(bool(one.all()) for one in fine)


def chunk_shares(run: CaseRun[Group]) -> list[list[int] | None]:
    """How often each rank's tensor is in each chunk of each result."""
    parts = [x.reshape(-1).tensor_split(run.case.n_ranks) for x in xs(run.tree)]
    return [
        shares([part[index] for part in parts], chunk)
        for out in outs(run.got)
        for index, chunk in enumerate(out.reshape(-1).tensor_split(run.case.n_ranks))
    ]


def moved_chunks(run: CaseRun[Group]) -> bool:
    """Every rank has all chunks of the sum, and some rank has them in other places."""
    case = run.case
    right, close = total(xs(run.tree)).reshape(-1).double().tensor_split(case.n_ranks), near_sum(run)

    def place(chunk: torch.Tensor) -> int:
        fits = (chunk.shape == true.shape and torch.allclose(chunk, true, rtol=close.rtol, atol=0) for true in right)
        return list(fits).index(True)

    found = [[place(chunk) for chunk in out.reshape(-1).double().tensor_split(case.n_ranks)] for out in outs(run.got)]
    order = list(range(case.n_ranks))
    return case.n_elements % case.n_ranks == 0 and all(sorted(row) == order for row in found)


RING = oracle(
    "ring",
    "A rank may send the tensor twice less two chunks, in its dtype: one chunk a round to the next rank, not the whole "
    "tensor. Cut it with torch.tensor_split into n chunks of nearly the same length.",
    "There should be n-1 rounds that add and n-1 that pass on. In each every rank sends one chunk and receives one.",
    (
        Hint(
            moved_chunks,
            "All chunks of the sum are there, and on some rank in the wrong places. Chunk i is the i-th part of the "
            "tensor on every rank: join the chunks in the order in which they were cut.",
            everywhere=False,
        ),
        Hint(
            lambda run: any(share and max(share) > 1 for share in chunk_shares(run)),
            "In some chunk a rank's tensor is counted twice. In the second half the chunks are complete: replace what "
            "is there instead of adding to it.",
            everywhere=False,
        ),
        Hint(
            one_chunk_right,
            "Every rank has one chunk of the sum, which is the first half. In the second half pass the finished chunks "
            "on, n-1 times.",
            everywhere=False,
        ),
        Hint(
            rest_wrong,
            "The elements at the end are wrong, those that are left over when the number of elements is divided by n. "
            "torch.tensor_split gives them to the first chunks.",
            everywhere=False,
        ),
        Hint(
            lambda run: any(share and 0 in share for share in chunk_shares(run)),
            "Some chunk has not come by all ranks. Only the very first chunk that a rank sends is its own: in each "
            "further step, also where the second half begins, send the one that came in the step before.",
            everywhere=False,
        ),
    ),
)
