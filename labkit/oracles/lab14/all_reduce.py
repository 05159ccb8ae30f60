"""Lab 14: what is true of an all-reduce done in each of four ways, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab14.group import Group
from labkit.oracles.lab14.counts import cost, least_total
from labkit.oracles.lab14.sums import (
    PROPERTIES,
    SUM_HINTS,
    closeness,
    each_share,
    have_sum,
    outs,
    over_the_wire,
    shares,
    total,
    xs,
)
from labkit.spec import Budget, Hint, Oracle, Tolerance


def sum_on_all(case: Group, tree: dict) -> dict:
    """The sum, on every rank."""
    return {"ranks": [{"out": total(xs(tree))}] * case.n_ranks}


def near_sum(case: Group, tree: dict) -> Tolerance:
    return closeness(case.n_ranks, getattr(torch, case.dtype))


def of_wrong_values(hint: Hint) -> Hint:
    """The same, where some value is wrong: the traffic of right values has hints of its own."""

    def when(case: Group, tree: dict, got: dict) -> bool:
        return not all(have_sum(case, tree, got)) and bool(hint.when(case, tree, got))

    return Hint(when, hint.text)


def oracle(
    algorithm: str,
    bytes_hint: str,
    rounds_hint: str,
    diagnose: tuple[Hint, ...] = (),
) -> Oracle:
    """The oracle of one way to all-reduce. Its own hints on values come before those for any all-reduce."""

    def limit(name: str) -> Callable[[Group, dict], int]:
        # A lone rank sends nothing, and can send nothing to itself.
        return lambda case, tree: max(getattr(cost(algorithm, case), name), 1)

    return Oracle(
        id=f"14-{algorithm}",
        expect=sum_on_all,
        tolerance=near_sum,
        judge=(*PROPERTIES, *over_the_wire(lambda case: least_total(case.n_ranks, case.n_bytes))),
        budgets=(
            Budget("bytes_sent", limit("bytes_sent"), bytes_hint),
            Budget("bytes_total", limit("bytes_total"), bytes_hint),
            Budget("seconds", limit("rounds"), rounds_hint, unit="rounds"),
            Budget("messages", limit("messages"), "A rank sends more messages than it has to.", unit="messages"),
        ),
        diagnose=tuple(of_wrong_values(hint) for hint in (*diagnose, *SUM_HINTS)),
    )


def beyond_the_power_of_two(case: Group, tree: dict, got: dict) -> bool:
    """Only ranks from the largest power of two on are missing from a sum, or have none themselves."""
    inner = 2 ** (case.n_ranks.bit_length() - 1)
    found = each_share(case, tree, got)
    inside_fine = all(share[:inner] == [1] * inner for share in found[:inner])
    return inner < case.n_ranks and inside_fine and found != [[1] * case.n_ranks] * case.n_ranks


def some_have_sum(case: Group, tree: dict, got: dict) -> bool:
    """Rank 0 has the sum, and some others do, and some do not."""
    first, *others = have_sum(case, tree, got)
    return first and any(others) and not all(others)


def wrong_chunks(case: Group, tree: dict, got: dict) -> list[list[bool]]:
    """Of each rank's result, which of the n chunks of torch.tensor_split are not the sum."""
    right, close = total(xs(tree)).reshape(-1), near_sum(case, tree)
    return [
        [
            not torch.allclose(mine.double(), true.double(), rtol=close.rtol, atol=0)
            for mine, true in zip(out.reshape(-1).tensor_split(case.n_ranks), right.tensor_split(case.n_ranks))
        ]
        for out in outs(got)
    ]


def one_chunk_right(case: Group, tree: dict, got: dict) -> bool:
    """Each rank has one chunk of the sum, each another one."""
    wrong = wrong_chunks(case, tree, got)
    right = [[index for index, bad in enumerate(row) if not bad] for row in wrong]
    return case.n_ranks > 2 and sorted(right) == [[index] for index in range(case.n_ranks)]


def rest_wrong(case: Group, tree: dict, got: dict) -> bool:
    """Elements are wrong, and only those left over when their number is divided by that of the ranks."""
    whole = case.n_elements // case.n_ranks * case.n_ranks
    right, close = total(xs(tree)).reshape(-1).double(), near_sum(case, tree)
    flat = [out.reshape(-1).double() for out in outs(got)]
    fine = [torch.isclose(out, right, rtol=close.rtol, atol=0) for out in flat]
    return whole > 0 and all(bool(one[:whole].all()) for one in fine) and not all(bool(one.all()) for one in fine)


def chunk_shares(case: Group, tree: dict, got: dict) -> list[list[int] | None]:
    """How often each rank's tensor is in each chunk of each result."""
    parts = [x.reshape(-1).tensor_split(case.n_ranks) for x in xs(tree)]
    return [
        shares([part[index] for part in parts], chunk)
        for out in outs(got)
        for index, chunk in enumerate(out.reshape(-1).tensor_split(case.n_ranks))
    ]


def moved_chunks(case: Group, tree: dict, got: dict) -> bool:
    """Every rank has all chunks of the sum, and some rank has them in other places."""
    right, close = total(xs(tree)).reshape(-1).double().tensor_split(case.n_ranks), near_sum(case, tree)

    def place(chunk: torch.Tensor) -> int:
        fits = (chunk.shape == true.shape and torch.allclose(chunk, true, rtol=close.rtol, atol=0) for true in right)
        return list(fits).index(True)

    found = [[place(chunk) for chunk in out.reshape(-1).double().tensor_split(case.n_ranks)] for out in outs(got)]
    order = list(range(case.n_ranks))
    return case.n_elements % case.n_ranks == 0 and all(sorted(row) == order for row in found)


NAIVE = oracle(
    "naive",
    "Each rank sends its tensor once, to rank 0, and rank 0 sends the sum to each: 2(n-1) messages of S bytes in all, "
    "in the dtype of x. If everybody sends to everybody, there are n(n-1).",
    "Rank 0 can receive one message a round and send one, so there are n-1 rounds in and n-1 out. Look for a message "
    "that has to wait although rank 0 is free.",
    (
        Hint(
            some_have_sum,
            "Rank 0 has the sum, and not all the others have it. Send it only when the tensors of all ranks are in it: "
            "one loop that receives, then another that sends.",
        ),
    ),
)

TREE = oracle(
    "tree",
    "No rank should send more than ⌈log₂ n⌉ times, all together 2(n-1) times: one tensor over each edge of the tree "
    "going up, one going down, in the dtype of x.",
    "There should be ⌈log₂ n⌉ rounds up and as many down. In round k half of the ranks that are left send, each to the "
    "one 2^k below it; whoever has to receive twice in a row, or to wait in a chain, makes a round more.",
    (
        Hint(
            beyond_the_power_of_two,
            "It is right for a power of two only: the ranks beyond are left out. A rank whose partner does not exist "
            "goes on without one.",
        ),
        Hint(
            some_have_sum,
            "Rank 0 has the sum, and not all the others have it: a rank can pass it on only after it has come. On the "
            "way down the largest distance goes first.",
        ),
    ),
)

BUTTERFLY = oracle(
    "butterfly",
    "In each of the log₂ n exchanges a rank sends one tensor, in the dtype of x, to one partner; a rank beyond the "
    "largest power of two sends once in all.",
    "A butterfly takes log₂ n rounds, and two more where n is no power of two. In each of them all ranks send and "
    "receive at once.",
    (
        Hint(
            beyond_the_power_of_two,
            "It is right for a power of two only. Let each rank beyond hand its tensor to one inside before the "
            "exchanges, and give it the sum after them.",
        ),
    ),
)

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
        ),
        Hint(
            lambda case, tree, got: any(share and max(share) > 1 for share in chunk_shares(case, tree, got)),
            "In some chunk a rank's tensor is counted twice. In the second half the chunks are complete: replace what "
            "is there instead of adding to it.",
        ),
        Hint(
            one_chunk_right,
            "Every rank has one chunk of the sum, which is the first half. In the second half pass the finished chunks "
            "on, n-1 times.",
        ),
        Hint(
            rest_wrong,
            "The elements at the end are wrong, those that are left over when the number of elements is divided by n. "
            "torch.tensor_split gives them to the first chunks.",
        ),
        Hint(
            lambda case, tree, got: any(share and 0 in share for share in chunk_shares(case, tree, got)),
            "Some chunk has not come by all ranks. Only the very first chunk that a rank sends is its own: in each "
            "further step, also where the second half begins, send the one that came in the step before.",
        ),
    ),
)
